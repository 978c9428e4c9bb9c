-- Steps of an ended workflow. Differs from PostgreSQL: the writer is alone.
SELECT task.seq AS key, task.id
FROM holdfast_tasks AS task
WHERE task.workflow_id = :id AND task.finished_at IS NOT NULL
ORDER BY task.id
LIMIT :batch;
