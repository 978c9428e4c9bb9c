-- A scope of steps, and its gates. Differs from SQLite in types.
INSERT INTO holdfast_scopes (
    scope_id, workflow_id, body_open, tail_open, error_gate, ended_gate, returns
)
VALUES (
    :scope_id::uuid, :workflow_id::uuid, :body_open::int, :tail_open::int, :error_gate::uuid,
    :ended_gate::uuid, :returns::text
);
