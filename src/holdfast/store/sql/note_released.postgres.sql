-- A pause is over, and nothing is held by it, or set aside, any more. Differs from SQLite in types.
UPDATE holdfast_workflows
SET held = false
WHERE workflow_id = :id::uuid AND held AND status <> 'PAUSED'
    AND NOT EXISTS (
        SELECT FROM holdfast_tasks AS task
        WHERE task.workflow_id = :id::uuid AND task.parked IS NOT NULL AND task.parked = 'pause'
    )
RETURNING workflow_id;
