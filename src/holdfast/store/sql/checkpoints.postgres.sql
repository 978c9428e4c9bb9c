-- The durable steps of a task, in the order of their names; of a large value its beginning.
-- Differs from SQLite in the key of a task.
SELECT point.name, left(point.value, :longest::int), length(point.value)
FROM holdfast_checkpoints AS point
WHERE point.task_id = :id::uuid
ORDER BY point.name
LIMIT :limit::int;
