-- Where a claim stopped looking: the 1,000th entry after the given position, if there is one.
-- Differs from PostgreSQL, which needs the types of its parameters spelled out.
SELECT priority, enqueued_at, id
FROM holdfast_tasks
WHERE queue_name = :queue_name
    AND ready
    AND coalesce(concurrency_key, '') = :concurrency_key
    AND (priority, enqueued_at, id) > (:after_priority, :after_enqueued_at, :after_id)
ORDER BY priority, enqueued_at, id
LIMIT 1 OFFSET 999;
