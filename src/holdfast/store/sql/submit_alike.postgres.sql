-- submit: ∅ → PENDING, SCHEDULED or WAITING. Of one task, or of many that differ only in the columns
-- that are arrays here: calls of one function. (Each array costs the server 2 µs to set up and 0.1 µs
-- a row: `submit`, with 25 of them, takes 25 % longer for one row, and 20 % for twenty.)
-- Differs from SQLite: one row that is not plain goes this way, too, and the hint leaves with the
-- commit. A row that is not returned met its own id or a held unique slot.
INSERT INTO holdfast_tasks (
    id, task_name, version, queue_name, priority, args, kwargs, task_options, tags,
    enqueue_sha, sent_at, created_at, updated_at, run_at, good_until, good_for_us, expire_at,
    max_retries, unique_key, unique_slot, unique_until, workflow_id, deps_needed, deps_open,
    parent_id, root_id, schedule_name, schedule_tick, trace_context, concurrency_key,
    status, ready, due_at, enqueued_at
)
SELECT
    task.id, :task_name::text, :version::int, :queue_name::text, :priority::int, task.args,
    task.kwargs, :task_options::text, :tags::text, task.enqueue_sha, task.sent_at, now, now, run_at,
    deadline.at, :good_for_us::bigint, deadline.at, :max_retries::int, slot.text,
    slot.text, :unique_until::text, :workflow_id::uuid, :deps_needed::int, :deps_open::int,
    :parent_id::uuid,
    :root_id::uuid, :schedule_name::text, :schedule_tick::timestamptz, :trace_context::text,
    :concurrency_key::text,
    CASE WHEN waiting THEN 'WAITING' WHEN run_at > now THEN 'SCHEDULED' ELSE 'PENDING' END,
    NOT waiting AND (run_at > now) IS NOT TRUE,
    CASE WHEN NOT waiting AND run_at > now THEN run_at END,
    greatest(run_at, now)
FROM
    unnest(
        :id::uuid[], :args::text[], :kwargs::text[], :enqueue_sha::text[], :sent_at::timestamptz[],
        :unique_slot::text[]
    ) AS task (id, args, kwargs, enqueue_sha, sent_at, unique_slot),
    -- OFFSET 0: one reading of the clock for all columns of all rows.
    (SELECT :now AS now OFFSET 0) AS clock,
    LATERAL (
        SELECT
            coalesce(
                now + :delay_us::bigint * interval '1 microsecond', :asked_at::timestamptz
            ) AS run_at,
            :deps_open::int > 0 AS waiting
    ) AS given,
    LATERAL (
        SELECT coalesce(
            :good_until::timestamptz,
            CASE
                WHEN NOT waiting
                THEN greatest(run_at, now) + :good_for_us::bigint * interval '1 microsecond'
            END
        ) AS at
    ) AS deadline,
    -- Which period it belongs to is decided by this clock alone, so that all senders agree.
    LATERAL (
        SELECT CASE
            WHEN :unique_period_us::bigint IS NULL THEN task.unique_slot
            ELSE '@' || (extract(epoch FROM greatest(run_at, now)) * 1000000)::bigint
                / :unique_period_us::bigint
                || '/' || :unique_period_us::bigint || ' ' || task.unique_slot
        END AS text
    ) AS slot
ON CONFLICT DO NOTHING
RETURNING
    id,
    (SELECT count(pg_notify(:hint_channel, p)) FROM unnest(:hint_payloads::text[]) AS p);
