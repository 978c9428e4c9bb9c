-- Who is in the way of the submissions that were not created: the same id, or the live holder of
-- the same unique slot. Differs from PostgreSQL in how a batch is bound.
SELECT id, enqueue_sha, unique_slot, status, task_name
FROM holdfast_tasks
WHERE id IN (SELECT value FROM json_each(:ids))
UNION
SELECT id, enqueue_sha, unique_slot, status, task_name
FROM holdfast_tasks
WHERE unique_slot IN (SELECT value FROM json_each(:slots));
