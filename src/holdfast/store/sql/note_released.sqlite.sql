-- A pause is over, and nothing is held by it any more. Differs from PostgreSQL in types.
UPDATE holdfast_workflows
SET held = 0
WHERE workflow_id = :id AND held AND status <> 'PAUSED'
RETURNING CAST(workflow_id AS BLOB) AS workflow_id;
