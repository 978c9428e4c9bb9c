-- submit: ∅ → PENDING, SCHEDULED or WAITING. Of tasks of any kind; `submit_alike` for calls of one.
-- Differs from SQLite: rows come from unnest (COPY cannot say ON CONFLICT … RETURNING), and the hint
-- leaves with the commit. A row that is not returned met its own id or a held unique slot.
INSERT INTO holdfast_tasks (
    id, task_name, version, queue_name, priority, args, kwargs, task_options, tags,
    enqueue_sha, sent_at, created_at, updated_at, run_at, good_until, good_for_us, expire_at,
    max_retries, unique_key, unique_slot, unique_until, workflow_id, deps_needed, deps_open,
    parent_id, root_id, schedule_name, schedule_tick, trace_context, concurrency_key,
    status, ready, due_at, enqueued_at
)
SELECT
    id, task_name, version, queue_name, priority, args, kwargs, task_options, tags,
    enqueue_sha, sent_at, now, now, run_at, deadline.at, good_for_us, deadline.at,
    max_retries, slot.text, slot.text, unique_until, workflow_id, deps_needed, deps_open,
    parent_id, root_id, schedule_name, schedule_tick, trace_context, concurrency_key,
    CASE WHEN waiting THEN 'WAITING' WHEN run_at > now THEN 'SCHEDULED' ELSE 'PENDING' END,
    NOT waiting AND (run_at > now) IS NOT TRUE,
    CASE WHEN NOT waiting AND run_at > now THEN run_at END,
    greatest(run_at, now)
FROM (
    SELECT
        task.*,
        clock.now,
        coalesce(clock.now + task.delay_us * interval '1 microsecond', task.asked_at) AS run_at,
        task.deps_open > 0 AS waiting
    FROM
        unnest(
            :id::uuid[], :task_name::text[], :version::int[], :queue_name::text[],
            :priority::int[], :args::text[], :kwargs::text[], :task_options::text[],
            :tags::text[], :enqueue_sha::text[], :sent_at::timestamptz[], :delay_us::bigint[],
            :asked_at::timestamptz[], :good_until::timestamptz[], :good_for_us::bigint[],
            :max_retries::int[], :unique_slot::text[], :unique_until::text[],
            :unique_period_us::bigint[],
            :workflow_id::uuid[], :deps_needed::int[], :deps_open::int[], :parent_id::uuid[],
            :root_id::uuid[], :schedule_name::text[], :schedule_tick::timestamptz[],
            :trace_context::text[], :concurrency_key::text[]
        ) AS task (
            id, task_name, version, queue_name, priority, args, kwargs, task_options, tags,
            enqueue_sha, sent_at, delay_us, asked_at, good_until, good_for_us, max_retries,
            unique_slot, unique_until, unique_period_us, workflow_id, deps_needed, deps_open,
            parent_id, root_id, schedule_name, schedule_tick, trace_context,
            concurrency_key
        ),
        -- OFFSET 0: one reading of the clock for all columns of all rows.
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
) AS deadline,
-- Which period it belongs to is decided by this clock alone, so that all senders agree.
LATERAL (
    SELECT CASE
        WHEN unique_period_us IS NULL THEN unique_slot
        ELSE '@' || (extract(epoch FROM greatest(run_at, now)) * 1000000)::bigint / unique_period_us
            || '/' || unique_period_us || ' ' || unique_slot
    END AS text
) AS slot
ON CONFLICT DO NOTHING
RETURNING
    id,
    (SELECT count(pg_notify(:hint_channel, p)) FROM unnest(:hint_payloads::text[]) AS p);
