-- Who is in the way of the submissions that were not created: the same id, or the live holder of
-- the same unique slot. Differs from SQLite in how a batch is bound.
SELECT id, enqueue_sha, unique_slot, status, task_name
FROM holdfast_tasks
WHERE id = ANY (:ids::uuid[])
UNION
SELECT id, enqueue_sha, unique_slot, status, task_name
FROM holdfast_tasks
WHERE unique_slot = ANY (:slots::text[]);
