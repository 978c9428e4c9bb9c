-- Where a claim stopped looking: the 1,000th entry after the given position, if there is one.
-- Differs from SQLite, which needs no types for its parameters.
SELECT priority, enqueued_at, id
FROM holdfast_tasks
WHERE queue_name = :queue_name
    AND ready
    AND coalesce(concurrency_key, '') = :concurrency_key::text
    AND (priority, enqueued_at, id)
        > (:after_priority::int, :after_enqueued_at::timestamptz, :after_id::uuid)
ORDER BY priority, enqueued_at, id
LIMIT 1 OFFSET 999;
