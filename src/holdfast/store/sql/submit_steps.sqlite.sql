-- submit: ∅ → PENDING, SCHEDULED or WAITING, of the steps of a workflow. Run once for each.
-- Differs from PostgreSQL in how rows are bound.
INSERT INTO holdfast_tasks (
    id, task_name, version, queue_name, priority, args, kwargs, task_options, tags, enqueue_sha,
    sent_at, good_for_us, max_retries, workflow_id, deps_needed, deps_open, parent_id, root_id,
    trace_context, concurrency_key, scope_id, step_number, step_name, step_part, step_required,
    step_handler, step_cleanup, step_tail, step_hidden, inputs, schedule_name, schedule_tick,
    created_at, updated_at, run_at, good_until, expire_at, status, ready, due_at, enqueued_at
)
SELECT
    :id, :task_name, :version, :queue_name, :priority, :args, :kwargs, :task_options, :tags,
    :enqueue_sha, :sent_at, :good_for_us, :max_retries, :workflow_id, :deps_needed, :deps_open,
    :parent_id, :root_id, :trace_context, :concurrency_key, :scope_id, :step_number, :step_name,
    :step_part, :step_required, :step_handler, :step_cleanup, :step_tail, :step_hidden, :inputs,
    :schedule_name, :schedule_tick, :now, :now, run_at, deadline, deadline,
    CASE WHEN :deps_open > 0 THEN 'WAITING' WHEN run_at > :now THEN 'SCHEDULED' ELSE 'PENDING' END,
    :deps_open = 0 AND ifnull(run_at <= :now, 1),
    CASE WHEN :deps_open = 0 AND run_at > :now THEN run_at END,
    max(ifnull(run_at, :now), :now)
FROM (
    SELECT
        run_at,
        CASE
            WHEN :good_for_us IS NULL OR :deps_open > 0 OR :good_until IS NOT NULL THEN :good_until
            ELSE max(ifnull(run_at, :now), :now) + :good_for_us
        END AS deadline
    FROM (
        SELECT max(
            ifnull(:now + :delay_us, :asked_at), ifnull(:asked_at, :now + :delay_us)
        ) AS run_at
    )
);
