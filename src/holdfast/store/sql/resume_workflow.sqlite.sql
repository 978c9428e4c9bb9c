-- resume: PAUSED → RUNNING. Differs from PostgreSQL in types.
UPDATE holdfast_workflows
SET status = 'RUNNING', paused_at = NULL, paused_by = NULL, updated_at = :now
WHERE workflow_id = :id AND status = 'PAUSED'
RETURNING CAST(workflow_id AS BLOB) AS workflow_id;
