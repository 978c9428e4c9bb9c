-- unblock: WAITING → PENDING or SCHEDULED: enough of its parents ended as it needs, and its workflow
-- is not paused (a step that needs any one parent could meet its number by two of them).
-- Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_tasks AS task
SET status = CASE WHEN run_at > :now THEN 'SCHEDULED' ELSE 'PENDING' END,
    ready = ifnull(run_at <= :now, 1),
    due_at = CASE WHEN run_at > :now THEN run_at END,
    enqueued_at = CASE WHEN run_at > :now THEN run_at ELSE :now END,
    good_until = ifnull(max(ifnull(run_at, :now), :now) + good_for_us, good_until),
    expire_at = ifnull(max(ifnull(run_at, :now), :now) + good_for_us, good_until),
    updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids))
    AND status = 'WAITING'
    AND deps_needed <= 0
    AND NOT ifnull(task.handed_over, 0)
    AND NOT EXISTS (
        SELECT 1 FROM holdfast_task_dependencies AS pause
        WHERE pause.parent_id = task.workflow_id AND pause.child_id = task.id
            AND NOT pause.resolved
    )
RETURNING
    CAST(id AS BLOB) AS id, CAST(status AS BLOB) AS status, CAST(queue_name AS BLOB) AS queue_name;
