-- The tasks in flight of a queue or a task (the other is null) get the bit of a counter; with :keyed,
-- those that have a key. The rows are locked so: what leaves now has left before, or leaves after.
-- Differs from SQLite in how leases name their tasks.
UPDATE holdfast_tasks
SET slots = slots | :bit::int
WHERE id = ANY (ARRAY(SELECT unnest(task_ids) FROM holdfast_leases))
    AND claim_token IS NOT NULL
    AND queue_name = coalesce(:queue_name::text, queue_name)
    AND task_name = coalesce(:task_name::text, task_name)
    AND (NOT :keyed::boolean OR concurrency_key > '')
RETURNING concurrency_key;
