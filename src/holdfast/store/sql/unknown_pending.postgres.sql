-- PENDING tasks whose name and version no live worker knows, enqueued long ago: what `drop` is for.
-- Differs from SQLite in how a batch is bound.
SELECT id
FROM holdfast_tasks
WHERE ready
    AND queue_name = :queue_name
    AND enqueued_at < :before::timestamptz
    AND task_name || '@' || version <> ALL (:known::text[])
ORDER BY priority, enqueued_at, id
LIMIT :batch::int
FOR UPDATE SKIP LOCKED;
