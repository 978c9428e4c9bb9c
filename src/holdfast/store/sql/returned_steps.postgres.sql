-- Of these steps, which could begin now, those that must not: their workflow winds down and stops them
-- (`stopping`), or is paused (null). Differs from SQLite in how a batch is bound.
SELECT task.id, task.workflow_id, CASE WHEN stops THEN whole.stopping END AS stopping
FROM holdfast_tasks AS task
JOIN holdfast_workflows AS whole ON whole.workflow_id = task.workflow_id,
LATERAL (
    SELECT CASE
        WHEN whole.stopping IS NULL THEN false
        WHEN whole.stopping = 'fail_fast' THEN NOT coalesce(task.step_handler, false)
        ELSE whole.stop_all OR NOT coalesce(task.step_cleanup, false)
    END AS stops
) AS decided
WHERE task.id = ANY (:ids::uuid[]) AND task.status IN ('PENDING', 'SCHEDULED', 'WAITING')
    AND NOT coalesce(task.handed_over, false) AND whole.finished_at IS NULL
    AND (stops OR whole.status = 'PAUSED')
ORDER BY task.id;
