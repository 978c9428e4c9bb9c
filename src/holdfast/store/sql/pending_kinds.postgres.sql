-- What is claimable in these queues: of each at most :scan entries of the claim index, by task.
-- Differs from SQLite in how a batch is bound.
SELECT wanted.queue_name, found.task_name, found.version, count(*), min(found.enqueued_at)
FROM unnest(:queues::text[]) AS wanted (queue_name)
CROSS JOIN LATERAL (
    SELECT task.task_name, task.version, task.enqueued_at
    FROM holdfast_tasks AS task
    WHERE task.queue_name = wanted.queue_name
        AND task.ready
    LIMIT :scan::int
) AS found
GROUP BY wanted.queue_name, found.task_name, found.version
ORDER BY wanted.queue_name, found.task_name, found.version;
