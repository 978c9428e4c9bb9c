-- The tasks of a key (or those without one, if that is empty) that a claim under limits may choose
-- from, in the order of the queue, up to :wanted. At most 1,000 entries are examined, as for `claim`.
-- Differs from PostgreSQL in the key, and in how batches are bound.
SELECT seq AS key, task_name, priority, enqueued_at, id
FROM (
    SELECT
        seq, task_name, version, good_until, attempt, priority, enqueued_at, id,
        iif(:careful, status = 'PENDING' AND claim_token IS NULL AND due_at IS NULL
            AND finished_at IS NULL AND error_code IS NULL
            AND priority BETWEEN 1 AND 100
            AND length(id) = 36 AND id NOT GLOB '*[^0-9a-f-]*'
            AND length(task_name) BETWEEN 1 AND 255 AND length(queue_name) BETWEEN 1 AND 100
            AND attempt BETWEEN 0 AND 2147483647 AND retry_count BETWEEN 0 AND 2147483647
            AND crash_count BETWEEN 0 AND 2147483647 AND max_retries BETWEEN 0 AND 2147483647
            AND enqueued_at < 253402300800000000 AND created_at < 253402300800000000
            AND ifnull(length(task_options), 0) <= 10000000
            AND ifnull(length(trace_context), 0) <= 10000000, 1) AS sound
    FROM holdfast_tasks
    WHERE queue_name = :queue_name
        AND ready
        AND coalesce(concurrency_key, '') = coalesce(CAST(:concurrency_key AS TEXT), '')
        AND (priority, enqueued_at, id) > (:after_priority, :after_enqueued_at, :after_id)
    ORDER BY priority, enqueued_at, id
    LIMIT 1000
)
WHERE task_name || '@' || version IN (SELECT value FROM json_each(:known))
    AND (good_until IS NULL OR good_until > :now)
    AND attempt <= :most_starts
    AND sound
    AND seq NOT IN (SELECT value FROM json_each(:aside))
ORDER BY priority, enqueued_at, id
LIMIT :wanted;
