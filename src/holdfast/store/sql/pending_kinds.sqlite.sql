-- What is claimable in one of these queues: of each at most :scan entries of the claim index, by
-- task. Differs from PostgreSQL, which has LATERAL: the entries are found by their place.
SELECT
    task.queue_name, task.task_name, task.version, count(*), min(task.enqueued_at)
FROM json_each(:queues) AS wanted
CROSS JOIN holdfast_tasks AS task
WHERE task.seq IN (
    SELECT entry.seq FROM holdfast_tasks AS entry
    WHERE entry.queue_name = wanted.value AND entry.ready
    LIMIT :scan
)
GROUP BY task.queue_name, task.task_name, task.version
ORDER BY task.queue_name, task.task_name, task.version;
