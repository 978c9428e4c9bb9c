-- How many count rows of a scope are open, as they were counted anew. Differs from PostgreSQL in types.
UPDATE holdfast_scopes
SET body_open = :body, tail_open = :tail
WHERE scope_id = :id
RETURNING
    CAST(workflow_id AS BLOB) AS workflow_id, body_open, tail_open,
    CAST(error_id AS BLOB) AS error_id, CAST(error_gate AS BLOB) AS error_gate,
    CAST(ended_gate AS BLOB) AS ended_gate;
