-- hold: PENDING, SCHEDULED → WAITING: a pause is one more dependency of each step that has not begun
-- (of those that wait already, too), with the workflow itself as the parent. A step that is held
-- already is not held twice, and none once the workflow was resumed.
-- Differs from PostgreSQL: the steps first, then their edges.
UPDATE holdfast_tasks
SET status = 'WAITING', ready = 0, due_at = NULL,
    deps_open = deps_open + 1, deps_needed = deps_needed + 1,
    expire_at = CASE WHEN good_for_us IS NULL THEN expire_at END, updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids))
    AND status IN ('PENDING', 'SCHEDULED', 'WAITING')
    AND NOT EXISTS (
        SELECT 1 FROM holdfast_workflows WHERE workflow_id = :workflow_id AND status <> 'PAUSED'
    )
    AND NOT EXISTS (
        SELECT 1 FROM holdfast_task_dependencies AS pause
        WHERE pause.parent_id = :workflow_id AND pause.child_id = holdfast_tasks.id
            AND NOT pause.resolved
    );
INSERT INTO holdfast_task_dependencies AS edge (parent_id, child_id, on_status)
SELECT :workflow_id, value, 'always'
FROM json_each(:ids)
WHERE NOT EXISTS (
        SELECT 1 FROM holdfast_workflows WHERE workflow_id = :workflow_id AND status <> 'PAUSED'
    )
ON CONFLICT (parent_id, child_id) DO UPDATE
SET resolved = 0, satisfied = NULL
WHERE edge.resolved
RETURNING CAST(child_id AS BLOB) AS child_id;
