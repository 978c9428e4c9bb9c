-- submit: ∅ → PENDING, SCHEDULED or WAITING. Of many tasks that differ only in the columns that come
-- in the JSON `rows` (id, args, kwargs, enqueue_sha, sent_at, unique_slot): calls of one function. All
-- are written or none: if one meets its own id or a held unique slot, this fails, and the engine runs
-- `submit` for each. (For 500 rows that takes 1.7 times as long; RETURNING would add a sixth here.)
-- Differs from PostgreSQL, which has arrays, and returns the rows that were written.
INSERT INTO holdfast_tasks (
    id, task_name, version, queue_name, priority, args, kwargs, task_options, tags,
    enqueue_sha, sent_at, created_at, updated_at, run_at, good_until, good_for_us, expire_at,
    max_retries, unique_key, unique_slot, unique_until, workflow_id, deps_needed, deps_open,
    parent_id, root_id, schedule_name, schedule_tick, trace_context, concurrency_key,
    status, ready, due_at, enqueued_at
)
SELECT
    json_extract(value, '$[0]'), :task_name, :version, :queue_name, :priority,
    json_extract(value, '$[1]'), json_extract(value, '$[2]'), :task_options, :tags,
    json_extract(value, '$[3]'), json_extract(value, '$[4]'), :now, :now, run_at,
    deadline, :good_for_us, deadline, :max_retries,
    period || json_extract(value, '$[5]'), period || json_extract(value, '$[5]'), :unique_until,
    :workflow_id, :deps_needed,
    :deps_open, :parent_id, :root_id, :schedule_name, :schedule_tick, :trace_context,
    :concurrency_key,
    CASE
        WHEN :deps_open > 0 THEN 'WAITING'
        WHEN run_at > :now THEN 'SCHEDULED'
        ELSE 'PENDING'
    END,
    :deps_open = 0 AND ifnull(run_at <= :now, 1),
    CASE WHEN :deps_open = 0 AND run_at > :now THEN run_at END,
    max(ifnull(run_at, :now), :now)
FROM (
    SELECT
        run_at,
        CASE
            WHEN :good_for_us IS NULL OR :deps_open > 0 OR :good_until IS NOT NULL THEN :good_until
            ELSE max(ifnull(run_at, :now), :now) + :good_for_us
        END AS deadline,
        CASE
            WHEN :unique_period_us IS NULL THEN ''
            ELSE '@' || (max(ifnull(run_at, :now), :now) / :unique_period_us)
                || '/' || :unique_period_us || ' '
        END AS period
    FROM (SELECT ifnull(:now + :delay_us, :asked_at) AS run_at)
)
CROSS JOIN json_each(:rows);
