-- A scope of steps, and its gates. Differs from PostgreSQL in types.
INSERT INTO holdfast_scopes (
    scope_id, workflow_id, body_open, tail_open, error_gate, ended_gate, returns
)
VALUES (:scope_id, :workflow_id, :body_open, :tail_open, :error_gate, :ended_gate, :returns);
