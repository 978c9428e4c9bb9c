-- start: ∅ → RUNNING; a workflow without steps has ended at once. Returns nothing if its id is taken,
-- or its unique slot. Differs from PostgreSQL in types.
INSERT INTO holdfast_workflows (
    workflow_id, workflow_name, version, status, on_failure, deadline_us, deadline_at, run_at,
    unique_key, unique_slot, tags, arguments, digest, sent_at, created_at, updated_at, finished_at,
    steps, parent_id, step_id, root_id, trace_context
)
VALUES (
    :id, :name, :version, iif(:steps = 0, 'COMPLETED', 'RUNNING'), :on_failure, :deadline_us,
    max(:now, ifnull(:run_at, :now)) + :deadline_us, :run_at, :unique_key,
    iif(:steps > 0, :unique_key, NULL), :tags, :arguments, :digest, :sent_at, :now, :now,
    iif(:steps = 0, :now, NULL), :steps, :parent_id, :step_id, :root_id, :trace_context
)
ON CONFLICT DO NOTHING
RETURNING CAST(workflow_id AS BLOB) AS workflow_id;
