-- PENDING tasks whose name and version no live worker knows, enqueued long ago: what `drop` is for.
-- As in a claim, at most 1,000 entries after the given position are examined, so that a long queue
-- of tasks that everybody knows costs a bounded amount, and each candidate is locked by its key.
-- Differs from SQLite: row locks, and how a batch is bound.
SELECT locked.id, locked.id AS key
FROM (
    SELECT task.id, task.task_name, task.version, task.enqueued_at
    FROM holdfast_tasks AS task
    WHERE task.queue_name = :queue_name
        AND task.ready
        AND coalesce(task.concurrency_key, '') = :concurrency_key::text
        AND (task.priority, task.enqueued_at, task.id)
            > (:after_priority::int, :after_enqueued_at::timestamptz, :after_id::uuid)
    ORDER BY task.priority, task.enqueued_at, task.id
    LIMIT 1000
) AS examined
CROSS JOIN LATERAL (
    SELECT task.id
    FROM holdfast_tasks AS task
    WHERE task.id = examined.id
        AND task.status = 'PENDING'
        AND task.queue_name = :queue_name
        AND task.enqueued_at < :before::timestamptz
    FOR UPDATE SKIP LOCKED
) AS locked
WHERE examined.enqueued_at < :before::timestamptz
    AND examined.task_name || '@' || examined.version <> ALL (:known::text[])
LIMIT :batch::int;
