-- Tasks in the order of their ids. Differs from PostgreSQL: the writer is alone, nothing to lock.
SELECT id, status, workflow_id, error_code, unique_key, task_name, deps_needed, handed_over,
    scope_id IS NOT NULL
FROM holdfast_tasks
WHERE id IN (SELECT value FROM json_each(:ids))
ORDER BY id;
