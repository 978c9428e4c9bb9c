-- Steps that a stopping workflow has still to stop: what has not begun, except for handlers or
-- cleanups; of those that run, if it is to end them, the ones that have not been told.
-- Differs from SQLite in types.
SELECT task.id, whole.stopping
FROM holdfast_workflows AS whole
JOIN holdfast_tasks AS task ON task.workflow_id = whole.workflow_id
WHERE whole.workflow_id = :id::uuid AND whole.finished_at IS NULL AND whole.stopping IS NOT NULL
    AND NOT coalesce(task.handed_over, false)
    AND CASE
        WHEN whole.stopping = 'fail_fast' THEN NOT coalesce(task.step_handler, false)
        ELSE whole.stop_all OR NOT coalesce(task.step_cleanup, false)
    END
    AND (
        task.status IN ('WAITING', 'SCHEDULED', 'PENDING', 'CLAIMED')
        OR (
            task.status = 'RUNNING' AND task.cancel_requested_at IS NULL
            AND whole.stopping <> 'fail_fast'
        )
    )
ORDER BY task.id
LIMIT :batch::int;
