-- unblock: WAITING → PENDING or SCHEDULED: enough of its parents ended as it needs, and its workflow
-- is not paused (a step that needs any one parent could meet its number by two of them).
-- Differs from SQLite in how a batch is bound.
UPDATE holdfast_tasks AS task
SET (status, ready, due_at, enqueued_at, good_until, expire_at) = (
        SELECT
            CASE WHEN task.run_at > now THEN 'SCHEDULED' ELSE 'PENDING' END,
            (task.run_at > now) IS NOT TRUE,
            CASE WHEN task.run_at > now THEN task.run_at END,
            CASE WHEN task.run_at > now THEN task.run_at ELSE now END,
            deadline.at,
            deadline.at
        FROM
            (SELECT :now AS now) AS clock,
            LATERAL (
                SELECT coalesce(
                    greatest(task.run_at, now) + task.good_for_us * interval '1 microsecond',
                    task.good_until) AS at
            ) AS deadline
    ),
    updated_at = :now
WHERE id = ANY (:ids::uuid[])
    AND status = 'WAITING'
    AND deps_needed <= 0
    AND NOT coalesce(task.handed_over, false)
    AND NOT EXISTS (
        SELECT FROM holdfast_task_dependencies AS pause
        WHERE pause.parent_id = task.workflow_id AND pause.child_id = task.id
            AND NOT pause.resolved
    )
RETURNING id, status, queue_name;
