-- The first task that a claim would try to take, as `claim` chooses it.
-- Differs from PostgreSQL in the key, and in how batches are bound.
SELECT seq AS key
FROM (
    SELECT seq, task_name, version, good_until, attempt
    FROM holdfast_tasks
    WHERE queue_name = :queue_name
        AND ready
        AND coalesce(concurrency_key, '') = ''
        AND (priority, enqueued_at, id) > (:after_priority, :after_enqueued_at, :after_id)
    ORDER BY priority, enqueued_at, id
    LIMIT 1000
)
WHERE task_name || '@' || version IN (SELECT value FROM json_each(:known))
    AND (good_until IS NULL OR good_until > :now)
    AND attempt <= :most_starts
    AND seq NOT IN (SELECT value FROM json_each(:aside))
LIMIT 1;
