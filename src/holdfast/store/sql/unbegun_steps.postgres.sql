-- Some steps of a workflow that have not begun, those that a pause holds or those that it does not
-- hold, locked in the order of their ids. Differs from SQLite, where the writer is alone.
SELECT task.id
FROM holdfast_tasks AS task
WHERE task.workflow_id = :workflow_id::uuid AND task.status IN ('PENDING', 'SCHEDULED', 'WAITING')
    AND NOT coalesce(task.handed_over, false)
    AND EXISTS (
        SELECT FROM holdfast_task_dependencies AS pause
        WHERE pause.parent_id = :workflow_id::uuid AND pause.child_id = task.id AND NOT pause.resolved
    ) = :held::bool
ORDER BY task.id
LIMIT :batch::int
FOR UPDATE OF task;
