-- One page of the janitor's walk by id: which tasks are past their retention.
-- Differs from PostgreSQL in the key of a task.
SELECT
    task.seq AS key,
    task.id,
    ifnull(
        CASE
            WHEN task.dead AND task.scope_id IS NULL THEN task.finished_at < :dead_before
            -- Steps go with their workflow.
            WHEN task.scope_id IS NOT NULL THEN false
            ELSE task.finished_at < :before
        END
        AND NOT EXISTS (
            SELECT 1 FROM holdfast_workflows AS workflow
            WHERE workflow.workflow_id = task.workflow_id AND workflow.finished_at IS NULL
        ),
        0
    ) AS past
FROM holdfast_tasks AS task
WHERE task.id > :after
ORDER BY task.id
LIMIT :page;
