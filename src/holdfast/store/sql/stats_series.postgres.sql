-- The counters of all workers of some range, by step of time and, if asked, by queue and by task:
-- what has been added up at a level, and what has not been yet. Differs from SQLite in its types.
SELECT
    (extract(epoch FROM at) * 1000000)::bigint / :step_us::bigint * :step_us::bigint,
    CASE WHEN :by_queue::boolean THEN queue_name END,
    CASE WHEN :by_task::boolean THEN task_name END,
    sum(sent)::bigint, sum(completed)::bigint, sum(failed)::bigint, sum(cancelled)::bigint,
    sum(stalled)::bigint, sum(expired)::bigint, sum(dropped)::bigint, sum(retried)::bigint,
    sum(snoozed)::bigint, sum(interrupted)::bigint, sum(other)::bigint, sum(wait_us)::bigint,
    sum(run_us)::bigint, sum(wait_00)::bigint, sum(wait_01)::bigint, sum(wait_02)::bigint,
    sum(wait_03)::bigint, sum(wait_04)::bigint, sum(wait_05)::bigint, sum(wait_06)::bigint,
    sum(wait_07)::bigint, sum(wait_08)::bigint, sum(wait_09)::bigint, sum(wait_10)::bigint,
    sum(wait_11)::bigint, sum(wait_12)::bigint, sum(wait_13)::bigint, sum(wait_14)::bigint,
    sum(wait_15)::bigint, sum(run_00)::bigint, sum(run_01)::bigint, sum(run_02)::bigint,
    sum(run_03)::bigint, sum(run_04)::bigint, sum(run_05)::bigint, sum(run_06)::bigint,
    sum(run_07)::bigint, sum(run_08)::bigint, sum(run_09)::bigint, sum(run_10)::bigint,
    sum(run_11)::bigint, sum(run_12)::bigint, sum(run_13)::bigint, sum(run_14)::bigint,
    sum(run_15)::bigint
FROM (
    SELECT
        at, queue_name, task_name, sent, completed, failed, cancelled, stalled, expired, dropped,
        retried, snoozed, interrupted, other, wait_us, run_us, wait_00, wait_01, wait_02, wait_03,
        wait_04, wait_05, wait_06, wait_07, wait_08, wait_09, wait_10, wait_11, wait_12, wait_13,
        wait_14, wait_15, run_00, run_01, run_02, run_03, run_04, run_05, run_06, run_07, run_08,
        run_09, run_10, run_11, run_12, run_13, run_14, run_15
    FROM holdfast_stats_series
    WHERE level = :level::text AND at >= :start::timestamptz AND at < :until::timestamptz
    UNION ALL
    SELECT
        minute, queue_name, task_name, sent, completed, failed, cancelled, stalled, expired,
        dropped, retried, snoozed, interrupted, other, wait_us, run_us, wait_00, wait_01, wait_02,
        wait_03, wait_04, wait_05, wait_06, wait_07, wait_08, wait_09, wait_10, wait_11, wait_12,
        wait_13, wait_14, wait_15, run_00, run_01, run_02, run_03, run_04, run_05, run_06, run_07,
        run_08, run_09, run_10, run_11, run_12, run_13, run_14, run_15
    FROM holdfast_stats
    WHERE minute >= :start::timestamptz AND minute < :until::timestamptz
) AS counted
WHERE (:queue_name::text IS NULL OR queue_name = :queue_name::text)
    AND (:task_name::text IS NULL OR task_name = :task_name::text)
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3;
