-- What scopes return, and the step of each that was the first to end badly.
-- Differs from SQLite in how a batch is bound.
SELECT
    scope.scope_id, scope.workflow_id, scope.returns, scope.error_id, task.step_number, task.status,
    task.result, task.handed_over, task.step_name
FROM holdfast_scopes AS scope
LEFT JOIN holdfast_tasks AS task ON task.id = scope.error_id
WHERE scope.scope_id = ANY (:ids::uuid[]);
