-- What is claimable in one of these queues: of each at most :scan entries of the claim index, by
-- task. Differs from PostgreSQL, which has LATERAL: the keys of a queue are gathered as JSON, so that
-- tasks are found by them; a correlated IN would be asked of every task there is.
SELECT task.queue_name, task.task_name, task.version, count(*), min(task.enqueued_at)
FROM holdfast_tasks AS task
WHERE task.seq IN (
    SELECT first.value
    FROM json_each(:queues) AS wanted
    CROSS JOIN json_each((
        SELECT json_group_array(entry.seq)
        FROM (
            SELECT seq FROM holdfast_tasks
            WHERE queue_name = wanted.value AND ready
            LIMIT :scan
        ) AS entry
    )) AS first
)
GROUP BY task.queue_name, task.task_name, task.version
ORDER BY task.queue_name, task.task_name, task.version;
