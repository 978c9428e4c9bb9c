-- The gates of the scopes of a workflow, and whether they are open.
-- Differs from PostgreSQL in types.
SELECT error_gate, ended_gate, body_open, error_id
FROM holdfast_scopes
WHERE workflow_id = :id AND (error_gate IS NOT NULL OR ended_gate IS NOT NULL);
