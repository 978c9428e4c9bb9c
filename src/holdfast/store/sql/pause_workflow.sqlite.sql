-- pause: RUNNING → PAUSED, by an operator (one by name or none), or by its failure policy.
-- Differs from PostgreSQL in types.
UPDATE holdfast_workflows
SET status = 'PAUSED', held = 1, paused_at = :now, paused_by = :paused_by, updated_at = :now
WHERE workflow_id IN (SELECT value FROM json_each(:ids)) AND status = 'RUNNING' AND stopping IS NULL
RETURNING CAST(workflow_id AS BLOB) AS workflow_id;
