-- start: ∅ → RUNNING; a workflow without steps has ended at once. Returns nothing if its id is taken,
-- or its unique slot. A part of one that is paused is paused with it.
-- Differs from PostgreSQL in types, and the writer is alone.
INSERT INTO holdfast_workflows (
    workflow_id, workflow_name, version, status, on_failure, deadline_us, deadline_at, run_at,
    unique_key, unique_slot, tags, arguments, digest, sent_at, created_at, updated_at, finished_at,
    steps, parent_id, step_id, root_id, trace_context, held, paused_at, paused_by
)
SELECT
    :id, :name, :version,
    CASE WHEN :steps = 0 THEN 'COMPLETED' WHEN paused THEN 'PAUSED' ELSE 'RUNNING' END,
    :on_failure, :deadline_us, max(:now, ifnull(:run_at, :now)) + :deadline_us, :run_at,
    :unique_key, iif(:steps > 0, :unique_key, NULL), :tags, :arguments, :digest, :sent_at, :now,
    :now, iif(:steps = 0, :now, NULL), :steps, :parent_id, :step_id, :root_id, :trace_context,
    paused, iif(paused, :now, NULL),
    iif(
        paused,
        (SELECT paused_by FROM holdfast_workflows WHERE workflow_id = :parent_id),
        NULL
    )
FROM (
    SELECT :steps > 0 AND EXISTS (
        SELECT 1 FROM holdfast_workflows WHERE workflow_id = :parent_id AND status = 'PAUSED'
    ) AS paused
)
WHERE true
ON CONFLICT DO NOTHING
RETURNING CAST(workflow_id AS BLOB) AS workflow_id;
