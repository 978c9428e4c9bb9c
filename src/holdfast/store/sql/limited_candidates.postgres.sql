-- The tasks of a key (or those without one, if that is empty) that a claim under limits may choose
-- from, in the order of the queue, up to :wanted. At most 1,000 entries are examined, as for `claim`.
-- Differs from SQLite in types, and in how batches are bound.
SELECT
    examined.id AS key, examined.task_name, examined.priority, examined.enqueued_at, examined.id
FROM (
    SELECT
        task.id, task.task_name, task.version, task.good_until, task.attempt, task.priority,
        task.enqueued_at,
        CASE
            WHEN :careful::boolean THEN task.claim_token IS NULL AND task.due_at IS NULL
                AND task.finished_at IS NULL AND task.error_code IS NULL
                AND length(task.task_name) BETWEEN 1 AND 255
                AND length(task.queue_name) BETWEEN 1 AND 100
                AND isfinite(task.enqueued_at) AND isfinite(task.created_at)
                AND coalesce(octet_length(task.task_options), 0) <= 10000000
                AND coalesce(octet_length(task.trace_context), 0) <= 10000000
            ELSE true
        END AS sound
    FROM holdfast_tasks AS task
    WHERE task.queue_name = :queue_name
        AND task.ready
        AND coalesce(task.concurrency_key, '') = :concurrency_key::text
        AND (task.priority, task.enqueued_at, task.id)
            > (:after_priority::int, :after_enqueued_at::timestamptz, :after_id::uuid)
    ORDER BY task.priority, task.enqueued_at, task.id
    LIMIT 1000
) AS examined
WHERE examined.task_name || '@' || examined.version = ANY (:known::text[])
    AND (examined.good_until IS NULL OR examined.good_until > :now)
    AND examined.attempt <= :most_starts::int
    AND examined.sound
    AND examined.id <> ALL (:aside::uuid[])
ORDER BY examined.priority, examined.enqueued_at, examined.id
LIMIT :wanted::int;
