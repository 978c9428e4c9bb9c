-- Of these workflows those that are paused and have steps that could begin: they came back, or were
-- added, after the pause. Differs from SQLite in how a batch is bound.
SELECT whole.workflow_id
FROM holdfast_workflows AS whole
WHERE whole.workflow_id = ANY (:ids::uuid[])
    AND whole.finished_at IS NULL AND whole.status = 'PAUSED'
    AND EXISTS (
        SELECT FROM holdfast_tasks AS task
        WHERE task.workflow_id = whole.workflow_id
            AND task.status IN ('PENDING', 'SCHEDULED', 'WAITING')
            AND NOT coalesce(task.handed_over, false)
            AND NOT EXISTS (
                SELECT FROM holdfast_task_dependencies AS pause
                WHERE pause.parent_id = whole.workflow_id AND pause.child_id = task.id
                    AND NOT pause.resolved
            )
    );
