-- Steps that a stopping workflow has still to stop: what has not begun, except for handlers or
-- cleanups; of those that run, if it is to end them, the ones that have not been told.
-- Differs from PostgreSQL in types.
SELECT task.id, whole.stopping
FROM holdfast_workflows AS whole
JOIN holdfast_tasks AS task ON task.workflow_id = whole.workflow_id
WHERE whole.workflow_id = :id AND whole.finished_at IS NULL AND whole.stopping IS NOT NULL
    AND NOT ifnull(task.handed_over, 0)
    AND CASE
        WHEN whole.stopping = 'fail_fast' THEN NOT ifnull(task.step_handler, 0)
        ELSE whole.stop_all OR NOT ifnull(task.step_cleanup, 0)
    END
    AND (
        task.status IN ('WAITING', 'SCHEDULED', 'PENDING', 'CLAIMED')
        OR (
            task.status = 'RUNNING' AND task.cancel_requested_at IS NULL
            AND whole.stopping <> 'fail_fast'
        )
    )
ORDER BY task.id
LIMIT :batch;
