-- resume: PAUSED → RUNNING. Differs from SQLite in types.
UPDATE holdfast_workflows
SET status = 'RUNNING', paused_at = NULL, paused_by = NULL, updated_at = :now
WHERE workflow_id = :id::uuid AND status = 'PAUSED'
RETURNING workflow_id;
