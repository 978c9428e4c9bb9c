-- Every column of these workflows, and what their scopes say. Differs from PostgreSQL in how a batch is bound.
SELECT
    whole.workflow_id, whole.workflow_name, whole.version, whole.status, whole.on_failure,
    whole.stopping, whole.stopped_by, whole.paused_at, whole.paused_by, whole.deadline_us,
    whole.deadline_at, whole.run_at, whole.unique_key, whole.tags, whole.arguments,
    whole.created_at, whole.updated_at, whole.finished_at, whole.steps, whole.parent_id,
    whole.step_id, whole.root_id, whole.trace_context, scope.returns, scope.error_id
FROM holdfast_workflows AS whole
LEFT JOIN holdfast_scopes AS scope ON scope.scope_id = whole.workflow_id
WHERE whole.workflow_id IN (SELECT value FROM json_each(:ids));
