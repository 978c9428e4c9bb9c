-- One page of the janitor's walk by primary key: which tasks are past their retention.
-- Nothing is locked: a lock is a write, and there is nothing to do for most of them.
-- Differs from SQLite in how the workflow is asked for.
SELECT
    task.id AS key,
    task.id,
    coalesce(
        CASE
            WHEN task.dead AND task.scope_id IS NULL THEN task.finished_at < :dead_before::timestamptz
            -- Steps go with their workflow.
            WHEN task.scope_id IS NOT NULL THEN false
            ELSE task.finished_at < :before::timestamptz
        END
        -- Not EXISTS: that may become a read of all workflows for every page. Nor an equality, for which
        -- an index that only ends with the id could be read while there are no workflows.
        AND NOT coalesce(
            (
                SELECT workflow.finished_at IS NULL
                FROM holdfast_workflows AS workflow
                WHERE workflow.workflow_id BETWEEN task.workflow_id AND task.workflow_id
                ORDER BY workflow.workflow_id
                LIMIT 1
            ),
            false
        ),
        false
    ) AS past
FROM holdfast_tasks AS task
WHERE task.id > :after::uuid
ORDER BY task.id
LIMIT :page::int;
