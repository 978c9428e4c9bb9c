-- Of these workflows those that are paused and have steps that could begin: they came back, or were
-- added, after the pause. Differs from PostgreSQL in how a batch is bound.
SELECT whole.workflow_id
FROM holdfast_workflows AS whole
WHERE whole.workflow_id IN (SELECT value FROM json_each(:ids))
    AND whole.finished_at IS NULL AND whole.status = 'PAUSED'
    AND EXISTS (
        SELECT 1 FROM holdfast_tasks AS task
        WHERE task.workflow_id = whole.workflow_id
            AND task.status IN ('PENDING', 'SCHEDULED', 'WAITING')
            AND NOT ifnull(task.handed_over, 0)
            AND NOT EXISTS (
                SELECT 1 FROM holdfast_task_dependencies AS pause
                WHERE pause.parent_id = whole.workflow_id AND pause.child_id = task.id
                    AND NOT pause.resolved
            )
    );
