-- hold: PENDING, SCHEDULED → WAITING: a pause is one more dependency of each step that has not begun
-- (of those that wait already, too), with the workflow itself as the parent. A step that is held
-- already is not held twice, and none once the workflow was resumed: whoever resumes it waits for us.
-- Differs from SQLite: one statement; the caller has locked the steps.
WITH whole AS MATERIALIZED (
    SELECT status FROM holdfast_workflows WHERE workflow_id = :workflow_id::uuid FOR SHARE
), paused AS (
    INSERT INTO holdfast_task_dependencies AS edge (parent_id, child_id, on_status)
    SELECT :workflow_id::uuid, step.id, 'always'
    FROM unnest(:ids::uuid[]) AS step (id)
    WHERE NOT EXISTS (SELECT FROM whole WHERE status <> 'PAUSED')
    ON CONFLICT (parent_id, child_id) DO UPDATE
    SET resolved = false, satisfied = NULL
    WHERE edge.resolved
    RETURNING child_id
)
UPDATE holdfast_tasks
SET status = 'WAITING', ready = false, due_at = NULL,
    deps_open = deps_open + 1, deps_needed = deps_needed + 1,
    expire_at = CASE WHEN good_for_us IS NULL THEN expire_at END, updated_at = :now
WHERE id = ANY (ARRAY(SELECT child_id FROM paused))
    AND status IN ('PENDING', 'SCHEDULED', 'WAITING')
RETURNING id;
