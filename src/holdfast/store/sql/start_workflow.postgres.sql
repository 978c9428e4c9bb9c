-- start: ∅ → RUNNING; a workflow without steps has ended at once. Returns nothing if its id is taken,
-- or its unique slot. A part of one that is paused is paused with it: whoever pauses that one waits
-- for us, and then finds its parts. Differs from SQLite in types and in that lock.
WITH above AS MATERIALIZED (
    SELECT status, paused_by
    FROM holdfast_workflows
    WHERE workflow_id = :parent_id::uuid
    FOR SHARE
)
INSERT INTO holdfast_workflows (
    workflow_id, workflow_name, version, status, on_failure, deadline_us, deadline_at, run_at,
    unique_key, unique_slot, tags, arguments, digest, sent_at, created_at, updated_at, finished_at,
    steps, parent_id, step_id, root_id, trace_context, held, paused_at, paused_by
)
SELECT
    :id::uuid, :name, :version::int,
    CASE WHEN :steps::int = 0 THEN 'COMPLETED' WHEN paused THEN 'PAUSED' ELSE 'RUNNING' END,
    :on_failure, :deadline_us::bigint,
    greatest(now, :run_at::timestamptz) + :deadline_us::bigint * interval '1 microsecond',
    :run_at::timestamptz, :unique_key::text,
    CASE WHEN :steps::int > 0 THEN :unique_key::text END,
    :tags::text, :arguments::text, :digest, :sent_at::timestamptz, now, now,
    CASE WHEN :steps::int = 0 THEN now END,
    :steps::int, :parent_id::uuid, :step_id::uuid, :root_id::uuid, :trace_context::text,
    paused, CASE WHEN paused THEN now END, CASE WHEN paused THEN (SELECT paused_by FROM above) END
FROM (
    SELECT
        :now AS now,
        :steps::int > 0 AND EXISTS (SELECT FROM above WHERE status = 'PAUSED') AS paused
    OFFSET 0
) AS clock
ON CONFLICT DO NOTHING
RETURNING workflow_id;
