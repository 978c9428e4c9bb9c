-- The workflow that ended first before this time, is no part of another one, and has no dead letter
-- among its steps. Differs from SQLite in types.
SELECT whole.workflow_id
FROM holdfast_workflows AS whole
WHERE whole.finished_at < :before::timestamptz
    AND NOT EXISTS (
        SELECT FROM holdfast_workflows AS parent WHERE parent.workflow_id = whole.parent_id
    )
    AND NOT EXISTS (
        SELECT FROM holdfast_tasks AS task
        WHERE task.workflow_id = whole.workflow_id
            AND task.dead
            AND (task.finished_at < :dead_before::timestamptz) IS NOT TRUE
    )
ORDER BY whole.finished_at
LIMIT 1
FOR UPDATE SKIP LOCKED;
