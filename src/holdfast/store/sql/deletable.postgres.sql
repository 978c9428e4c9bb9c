-- Which of these tasks may be deleted: ended, and no step of a workflow, with which those go. Locked.
-- Differs from SQLite: row locks, and how a batch is bound.
SELECT task.id AS key, task.id
FROM holdfast_tasks AS task
WHERE task.id = ANY (:ids::uuid[])
    AND task.finished_at IS NOT NULL
    AND NOT EXISTS (
        SELECT FROM holdfast_workflows AS workflow
        WHERE workflow.workflow_id = task.workflow_id
            AND (task.scope_id IS NOT NULL OR workflow.finished_at IS NULL)
    )
FOR UPDATE OF task;
