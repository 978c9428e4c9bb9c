-- What a task waits for, or waited for. Differs from SQLite in types.
SELECT edge.parent_id, task.task_name, task.status, edge.on_status, edge.satisfied
FROM holdfast_task_dependencies AS edge
LEFT JOIN holdfast_tasks AS task ON task.id = edge.parent_id
WHERE edge.child_id = :id::uuid
ORDER BY edge.parent_id
LIMIT :limit::int;
