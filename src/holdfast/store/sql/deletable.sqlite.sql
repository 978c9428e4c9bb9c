-- Which of these tasks may be deleted: ended, and no step of a workflow, with which those go.
-- Differs from PostgreSQL: no row locks, and how a batch is bound.
SELECT task.seq AS key, task.id
FROM holdfast_tasks AS task
WHERE task.id IN (SELECT value FROM json_each(:ids))
    AND task.finished_at IS NOT NULL
    AND NOT EXISTS (
        SELECT 1 FROM holdfast_workflows AS workflow
        WHERE workflow.workflow_id = task.workflow_id
            AND (task.scope_id IS NOT NULL OR workflow.finished_at IS NULL)
    );
