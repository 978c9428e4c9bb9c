-- A pause is over, and nothing is held by it any more. Differs from SQLite in types.
UPDATE holdfast_workflows
SET held = false
WHERE workflow_id = :id::uuid AND held AND status <> 'PAUSED'
RETURNING workflow_id;
