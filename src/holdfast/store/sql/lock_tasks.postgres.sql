-- Lock tasks in the order of their ids, so that two transactions that meet do not deadlock.
-- Differs from SQLite, where the writer is alone.
SELECT id, status, workflow_id, error_code, unique_key, task_name, deps_needed, handed_over,
    scope_id IS NOT NULL
FROM holdfast_tasks
WHERE id = ANY (:ids::uuid[])
ORDER BY id
FOR UPDATE;
