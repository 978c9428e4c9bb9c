-- submit: ∅ → PENDING, SCHEDULED or WAITING. Run once per submission; `submit_alike` for many calls of
-- one function.
-- Differs from PostgreSQL in how rows are bound. A row that is not written met its own id or a held
-- unique slot. (VALUES with the same sum five times takes three quarters of the time of a SELECT from
-- a subquery that names it once.)
INSERT INTO holdfast_tasks (
    id, task_name, version, queue_name, priority, args, kwargs, task_options, tags,
    enqueue_sha, sent_at, created_at, updated_at, run_at, good_until, good_for_us, expire_at,
    max_retries, unique_key, unique_slot, unique_until, workflow_id, deps_needed, deps_open,
    parent_id, root_id, schedule_name, schedule_tick, trace_context, concurrency_key,
    status, ready, due_at, enqueued_at
)
VALUES (
    :id, :task_name, :version, :queue_name, :priority, :args, :kwargs, :task_options, :tags,
    :enqueue_sha, :sent_at, :now, :now, ifnull(:now + :delay_us, :asked_at),
    CASE
        WHEN :good_for_us IS NULL OR :deps_open > 0 OR :good_until IS NOT NULL THEN :good_until
        ELSE max(ifnull(ifnull(:now + :delay_us, :asked_at), :now), :now) + :good_for_us
    END,
    :good_for_us,
    CASE
        WHEN :good_for_us IS NULL OR :deps_open > 0 OR :good_until IS NOT NULL THEN :good_until
        ELSE max(ifnull(ifnull(:now + :delay_us, :asked_at), :now), :now) + :good_for_us
    END,
    :max_retries,
    CASE
        WHEN :unique_period_us IS NULL THEN :unique_slot
        ELSE '@'
            || (max(ifnull(ifnull(:now + :delay_us, :asked_at), :now), :now) / :unique_period_us)
            || '/' || :unique_period_us || ' ' || :unique_slot
    END,
    CASE
        WHEN :unique_period_us IS NULL THEN :unique_slot
        ELSE '@'
            || (max(ifnull(ifnull(:now + :delay_us, :asked_at), :now), :now) / :unique_period_us)
            || '/' || :unique_period_us || ' ' || :unique_slot
    END,
    :unique_until, :workflow_id,
    :deps_needed, :deps_open, :parent_id, :root_id, :schedule_name, :schedule_tick, :trace_context,
    :concurrency_key,
    CASE
        WHEN :deps_open > 0 THEN 'WAITING'
        WHEN ifnull(:now + :delay_us, :asked_at) > :now THEN 'SCHEDULED'
        ELSE 'PENDING'
    END,
    :deps_open = 0 AND ifnull(ifnull(:now + :delay_us, :asked_at) <= :now, 1),
    CASE
        WHEN :deps_open = 0 AND ifnull(:now + :delay_us, :asked_at) > :now
        THEN ifnull(:now + :delay_us, :asked_at)
    END,
    max(ifnull(ifnull(:now + :delay_us, :asked_at), :now), :now)
)
ON CONFLICT DO NOTHING;
