-- The steps of a workflow, in the order of their ids, after a given one. Differs from SQLite in types.
SELECT
    id, workflow_id, scope_id, step_number, step_name, task_name, status, attempt,
    step_required, step_handler, step_cleanup, step_tail, step_hidden, handed_over, error_code,
    failed_reason, deps_needed, deps_open, created_at, started_at, finished_at
FROM holdfast_tasks
WHERE workflow_id = :id::uuid AND id > :after::uuid AND scope_id IS NOT NULL
ORDER BY workflow_id, id
LIMIT :limit::int;
