-- Some steps of a workflow that have not begun, those that a pause holds or those that it does not
-- hold. Differs from PostgreSQL: the writer is alone.
SELECT task.id
FROM holdfast_tasks AS task
WHERE task.workflow_id = :workflow_id AND task.status IN ('PENDING', 'SCHEDULED', 'WAITING')
    AND NOT ifnull(task.handed_over, 0)
    AND EXISTS (
        SELECT 1 FROM holdfast_task_dependencies AS pause
        WHERE pause.parent_id = :workflow_id AND pause.child_id = task.id AND NOT pause.resolved
    ) = :held
ORDER BY task.id
LIMIT :batch;
