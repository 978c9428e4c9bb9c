-- The first task that a claim would try to take, as `claim` chooses it.
-- Differs from SQLite in types, and in how batches are bound.
SELECT examined.id AS key
FROM (
    SELECT task.id, task.task_name, task.version, task.good_until, task.attempt
    FROM holdfast_tasks AS task
    WHERE task.queue_name = :queue_name
        AND task.ready
        AND coalesce(task.concurrency_key, '') = ''
        AND (task.priority, task.enqueued_at, task.id)
            > (:after_priority::int, :after_enqueued_at::timestamptz, :after_id::uuid)
    ORDER BY task.priority, task.enqueued_at, task.id
    LIMIT 1000
) AS examined
WHERE examined.task_name || '@' || examined.version = ANY (:known::text[])
    AND (examined.good_until IS NULL OR examined.good_until > :now)
    AND examined.attempt <= :most_starts::int
    AND examined.id <> ALL (:aside::uuid[])
LIMIT 1;
