-- How steps of a scope stand, with their values, for the step that asks (or for nobody).
-- Differs from PostgreSQL in how a batch is bound.
SELECT task.id, task.step_number, task.status, task.result, task.handed_over, edge.satisfied,
    task.step_name
FROM holdfast_tasks AS task
LEFT JOIN holdfast_task_dependencies AS edge
    ON edge.parent_id = task.id AND edge.child_id = :child_id
WHERE task.scope_id = :scope_id AND task.step_number IN (SELECT value FROM json_each(:numbers))
ORDER BY task.step_number;
