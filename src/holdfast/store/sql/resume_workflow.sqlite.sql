-- resume: PAUSED → RUNNING; its steps are released after it. Differs from PostgreSQL in types.
UPDATE holdfast_workflows
SET status = 'RUNNING', paused_at = NULL, paused_by = NULL, updated_at = :now
WHERE workflow_id IN (SELECT value FROM json_each(:ids)) AND status = 'PAUSED'
RETURNING CAST(workflow_id AS BLOB) AS workflow_id;
