-- resume: PAUSED → RUNNING; its steps are released after it. Differs from SQLite in types.
UPDATE holdfast_workflows
SET status = 'RUNNING', paused_at = NULL, paused_by = NULL, updated_at = :now
WHERE workflow_id = ANY (:ids::uuid[]) AND status = 'PAUSED'
RETURNING workflow_id;
