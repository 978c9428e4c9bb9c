-- submit: ∅ → PENDING, SCHEDULED or WAITING, of the steps of a workflow.
-- Differs from SQLite: rows come from unnest, and the hint leaves with the commit.
INSERT INTO holdfast_tasks (
    id, task_name, version, queue_name, priority, args, kwargs, task_options, tags, enqueue_sha,
    sent_at, good_for_us, max_retries, workflow_id, deps_needed, deps_open, parent_id, root_id,
    trace_context, concurrency_key, scope_id, step_number, step_name, step_part, step_required,
    step_handler, step_cleanup, step_tail, step_hidden, inputs, schedule_name, schedule_tick,
    created_at, updated_at, run_at, good_until, expire_at, status, ready, due_at, enqueued_at
)
SELECT
    id, task_name, version, queue_name, priority, args, kwargs, task_options, tags, enqueue_sha,
    sent_at, good_for_us, max_retries, workflow_id, deps_needed, deps_open, parent_id, root_id,
    trace_context, concurrency_key, scope_id, step_number, step_name, step_part, step_required,
    step_handler, step_cleanup, step_tail, step_hidden, inputs,
    schedule_name, schedule_tick, now, now, run_at, deadline.at, deadline.at,
    CASE WHEN waiting THEN 'WAITING' WHEN run_at > now THEN 'SCHEDULED' ELSE 'PENDING' END,
    NOT waiting AND (run_at > now) IS NOT TRUE,
    CASE WHEN NOT waiting AND run_at > now THEN run_at END,
    greatest(run_at, now)
FROM (
    SELECT
        task.*,
        clock.now,
        greatest(clock.now + task.delay_us * interval '1 microsecond', task.asked_at) AS run_at,
        task.deps_open > 0 AS waiting
    FROM
        unnest(
            :id::uuid[], :task_name::text[], :version::int[], :queue_name::text[],
            :priority::int[], :args::text[], :kwargs::text[], :task_options::text[],
            :tags::text[], :enqueue_sha::text[], :sent_at::timestamptz[], :delay_us::bigint[],
            :asked_at::timestamptz[], :good_until::timestamptz[], :good_for_us::bigint[],
            :max_retries::int[], :workflow_id::uuid[], :deps_needed::int[], :deps_open::int[],
            :parent_id::uuid[], :root_id::uuid[], :trace_context::text[],
            :concurrency_key::text[], :scope_id::uuid[], :step_number::int[],
            :step_name::text[], :step_part::int[], :step_required::bool[],
            :step_handler::bool[], :step_cleanup::bool[], :step_tail::text[],
            :step_hidden::text[], :inputs::text[], :schedule_name::text[],
            :schedule_tick::timestamptz[]
        ) AS task (
            id, task_name, version, queue_name, priority, args, kwargs, task_options, tags,
            enqueue_sha, sent_at, delay_us, asked_at, good_until, good_for_us, max_retries,
            workflow_id, deps_needed, deps_open, parent_id, root_id, trace_context,
            concurrency_key, scope_id, step_number, step_name, step_part, step_required,
            step_handler, step_cleanup, step_tail, step_hidden, inputs, schedule_name,
            schedule_tick
        ),
        (SELECT :now AS now OFFSET 0) AS clock
) AS given,
LATERAL (
    SELECT coalesce(
        good_until,
        CASE
            WHEN NOT waiting
            THEN greatest(run_at, now) + good_for_us * interval '1 microsecond'
        END
    ) AS at
) AS deadline
RETURNING
    id,
    (SELECT count(pg_notify(:hint_channel, p)) FROM unnest(:hint_payloads::text[]) AS p);
