-- The gates of the scopes of a workflow, and whether they are open.
-- Differs from SQLite in types.
SELECT error_gate, ended_gate, body_open, error_id
FROM holdfast_scopes
WHERE workflow_id = :id::uuid AND (error_gate IS NOT NULL OR ended_gate IS NOT NULL);
