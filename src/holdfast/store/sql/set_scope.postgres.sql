-- How many count rows of a scope are open, as they were counted anew. Differs from SQLite in types.
UPDATE holdfast_scopes
SET body_open = :body::int, tail_open = :tail::int
WHERE scope_id = :id::uuid
RETURNING workflow_id, body_open, tail_open, error_id, error_gate, ended_gate;
