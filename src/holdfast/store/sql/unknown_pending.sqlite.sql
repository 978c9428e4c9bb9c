-- PENDING tasks whose name and version no live worker knows, enqueued long ago: what `drop` is for.
-- As in a claim, at most 1,000 entries after the given position are examined, so that a long queue
-- of tasks that everybody knows costs a bounded amount.
-- Differs from PostgreSQL: nothing is locked, and how a batch is bound.
SELECT id, key
FROM (
    SELECT id, seq AS key, task_name, version, enqueued_at
    FROM holdfast_tasks
    WHERE queue_name = :queue_name
        AND ready
        AND coalesce(concurrency_key, '') = :concurrency_key
        AND (priority, enqueued_at, id) > (:after_priority, :after_enqueued_at, :after_id)
    ORDER BY priority, enqueued_at, id
    LIMIT 1000
)
WHERE enqueued_at < :before
    AND task_name || '@' || version NOT IN (SELECT value FROM json_each(:known))
LIMIT :batch;
