-- Some of the tasks in flight that hold a counter, the longest first.
-- Differs from PostgreSQL in how leases name their tasks.
SELECT id
FROM holdfast_tasks
WHERE seq IN (SELECT task.value FROM holdfast_leases AS lease, json_each(lease.task_ids) AS task)
    AND claim_token IS NOT NULL
    AND slots & :bit <> 0
    AND queue_name = coalesce(:queue_name, queue_name)
    AND task_name = coalesce(:task_name, task_name)
    AND (:concurrency_key IS NULL OR concurrency_key = :concurrency_key)
ORDER BY claimed_at, id
LIMIT :most;
