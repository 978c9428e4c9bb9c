-- Steps of an ended workflow, locked. Differs from SQLite: row locks.
SELECT task.id AS key, task.id
FROM holdfast_tasks AS task
WHERE task.workflow_id = :id::uuid AND task.finished_at IS NOT NULL
ORDER BY task.id
LIMIT :batch::int
FOR UPDATE;
