-- Of these steps, which could begin now, those that must not: their workflow winds down and stops them
-- (`stopping`), or is paused (null). Differs from PostgreSQL in how a batch is bound.
SELECT id, workflow_id, iif(stops, stopping, NULL) AS stopping
FROM (
    SELECT
        task.id, task.workflow_id, whole.stopping, whole.status,
        CASE
            WHEN whole.stopping IS NULL THEN 0
            WHEN whole.stopping = 'fail_fast' THEN NOT ifnull(task.step_handler, 0)
            ELSE whole.stop_all OR NOT ifnull(task.step_cleanup, 0)
        END AS stops
    FROM holdfast_tasks AS task
    JOIN holdfast_workflows AS whole ON whole.workflow_id = task.workflow_id
    WHERE task.id IN (SELECT value FROM json_each(:ids))
        AND task.status IN ('PENDING', 'SCHEDULED', 'WAITING')
        AND NOT ifnull(task.handed_over, 0) AND whole.finished_at IS NULL
)
WHERE stops OR status = 'PAUSED'
ORDER BY id;
