-- PENDING tasks whose name and version no live worker knows, enqueued long ago: what `drop` is for.
-- Differs from PostgreSQL in how a batch is bound.
SELECT id
FROM holdfast_tasks
WHERE ready
    AND queue_name = :queue_name
    AND enqueued_at < :before
    AND task_name || '@' || version NOT IN (SELECT value FROM json_each(:known))
ORDER BY priority, enqueued_at, id
LIMIT :batch;
