-- How steps of a scope stand, with their values, for the step that asks (or for nobody).
-- Differs from SQLite in how a batch is bound.
SELECT task.id, task.step_number, task.status, task.result, task.handed_over, edge.satisfied,
    task.step_name
FROM holdfast_tasks AS task
LEFT JOIN holdfast_task_dependencies AS edge
    ON edge.parent_id = task.id AND edge.child_id = :child_id::uuid
WHERE task.scope_id = :scope_id::uuid AND task.step_number = ANY (:numbers::int[])
ORDER BY task.step_number;
