-- The tasks in flight of a queue or a task (the other is null) get the bit of a counter; with :keyed,
-- those that have a key.
-- Differs from PostgreSQL in how leases name their tasks.
UPDATE holdfast_tasks
SET slots = slots | :bit
WHERE seq IN (SELECT task.value FROM holdfast_leases AS lease, json_each(lease.task_ids) AS task)
    AND claim_token IS NOT NULL
    AND queue_name = coalesce(:queue_name, queue_name)
    AND task_name = coalesce(:task_name, task_name)
    AND (NOT :keyed OR concurrency_key > '')
RETURNING concurrency_key;
