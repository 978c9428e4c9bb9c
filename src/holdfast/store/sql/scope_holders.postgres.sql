-- Some of the tasks in flight that hold a counter, the longest first.
-- Differs from SQLite in how leases name their tasks.
SELECT id
FROM holdfast_tasks
WHERE id = ANY (ARRAY(SELECT unnest(task_ids) FROM holdfast_leases))
    AND claim_token IS NOT NULL
    AND slots & :bit::int <> 0
    AND queue_name = coalesce(:queue_name::text, queue_name)
    AND task_name = coalesce(:task_name::text, task_name)
    AND (:concurrency_key::text IS NULL OR concurrency_key = :concurrency_key::text)
ORDER BY claimed_at, id
LIMIT :most::int;
