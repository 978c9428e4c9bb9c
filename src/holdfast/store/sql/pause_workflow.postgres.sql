-- pause: RUNNING → PAUSED, by an operator (one by name or none), or by its failure policy.
-- Differs from SQLite in types.
UPDATE holdfast_workflows
SET status = 'PAUSED', held = true, paused_at = :now, paused_by = :paused_by::text, updated_at = :now
WHERE workflow_id = ANY (:ids::uuid[]) AND status = 'RUNNING' AND stopping IS NULL
RETURNING workflow_id;
