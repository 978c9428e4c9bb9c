-- The durable steps of a task, in the order of their names; of a large value its beginning.
-- Differs from PostgreSQL in the key of a task.
SELECT point.name, substr(point.value, 1, :longest), length(point.value)
FROM holdfast_checkpoints AS point
WHERE point.task_seq = (SELECT task.seq FROM holdfast_tasks AS task WHERE task.id = :id)
ORDER BY point.name
LIMIT :limit;
