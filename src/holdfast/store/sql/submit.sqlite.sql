-- submit: ∅ → PENDING, SCHEDULED or WAITING. Run once per submission.
-- Differs from PostgreSQL: a prepared INSERT per row beats picking 26 columns out of JSON.
-- A row that is not returned met its own id or a held unique slot.
INSERT INTO holdfast_tasks (
    id, task_name, version, queue_name, priority, args, kwargs, task_options, tags,
    enqueue_sha, sent_at, created_at, updated_at, run_at, good_until, good_for_us, expire_at,
    max_retries, unique_key, unique_slot, workflow_id, deps_needed, deps_open, parent_id,
    root_id, schedule_name, schedule_tick, trace_context,
    status, ready, due_at, enqueued_at
)
SELECT
    :id, :task_name, :version, :queue_name, :priority, :args, :kwargs, :task_options, :tags,
    :enqueue_sha, :sent_at, :now, :now, run_at, :good_until, :good_for_us, :good_until,
    :max_retries, :unique_key, :unique_slot, :workflow_id, :deps_needed, :deps_open, :parent_id,
    :root_id, :schedule_name, :schedule_tick, :trace_context,
    CASE
        WHEN :deps_open > 0 THEN 'WAITING'
        WHEN run_at > :now THEN 'SCHEDULED'
        ELSE 'PENDING'
    END,
    :deps_open = 0 AND ifnull(run_at <= :now, 1),
    CASE WHEN :deps_open = 0 AND run_at > :now THEN run_at END,
    max(ifnull(run_at, :now), :now)
FROM (SELECT ifnull(:now + :delay_us, :asked_at) AS run_at)
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;
