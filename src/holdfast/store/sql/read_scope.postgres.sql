-- What a scope returns, and the step of it that was the first to end badly. Differs from SQLite in types.
SELECT
    scope.workflow_id, scope.returns, scope.error_id, task.step_number, task.status, task.result,
    task.handed_over
FROM holdfast_scopes AS scope
LEFT JOIN holdfast_tasks AS task ON task.id = scope.error_id
WHERE scope.scope_id = :scope_id::uuid;
