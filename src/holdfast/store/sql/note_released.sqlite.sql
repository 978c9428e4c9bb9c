-- A pause is over, and nothing is held by it, or set aside, any more. Differs from PostgreSQL in types.
UPDATE holdfast_workflows
SET held = 0
WHERE workflow_id = :id AND held AND status <> 'PAUSED'
    AND NOT EXISTS (
        SELECT 1 FROM holdfast_tasks AS task
        WHERE task.workflow_id = :id AND task.parked IS NOT NULL AND task.parked = 'pause'
    )
RETURNING CAST(workflow_id AS BLOB) AS workflow_id;
