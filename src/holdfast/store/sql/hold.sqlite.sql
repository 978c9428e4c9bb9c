-- hold: PENDING, SCHEDULED → WAITING: a paused workflow is one more dependency of each of its steps
-- (of those that wait already, too). Differs from PostgreSQL, which has booleans.
UPDATE holdfast_tasks
SET status = 'WAITING', ready = 0, due_at = NULL,
    deps_open = deps_open + 1, deps_needed = deps_needed + 1, updated_at = :now
WHERE workflow_id = :workflow_id AND status IN ('PENDING', 'SCHEDULED', 'WAITING')
RETURNING id;
