-- The counters of all workers of some range, by step of time and, if asked, by queue and by task:
-- what has been added up at a level, and what has not been yet. Differs from PostgreSQL in its types.
-- A sum is kept between 0 and 4 * 10^18: rows written by hand may hold numbers that overflow,
-- and total(), unlike sum(), takes them (it is exact up to 2^53).
SELECT
    at / :step_us * :step_us,
    CASE WHEN :by_queue THEN queue_name END,
    CASE WHEN :by_task THEN task_name END,
    CAST(max(min(total(sent), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(completed), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(failed), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(cancelled), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(stalled), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(expired), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(dropped), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(retried), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(snoozed), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(interrupted), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(other), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(wait_us), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(run_us), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(wait_00), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(wait_01), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(wait_02), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(wait_03), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(wait_04), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(wait_05), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(wait_06), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(wait_07), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(wait_08), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(wait_09), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(wait_10), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(wait_11), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(wait_12), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(wait_13), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(wait_14), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(wait_15), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(run_00), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(run_01), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(run_02), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(run_03), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(run_04), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(run_05), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(run_06), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(run_07), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(run_08), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(run_09), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(run_10), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(run_11), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(run_12), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(run_13), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(run_14), 4000000000000000000), 0) AS INTEGER),
    CAST(max(min(total(run_15), 4000000000000000000), 0) AS INTEGER)
FROM (
    SELECT
        at, queue_name, task_name, sent, completed, failed, cancelled, stalled, expired, dropped,
        retried, snoozed, interrupted, other, wait_us, run_us, wait_00, wait_01, wait_02, wait_03,
        wait_04, wait_05, wait_06, wait_07, wait_08, wait_09, wait_10, wait_11, wait_12, wait_13,
        wait_14, wait_15, run_00, run_01, run_02, run_03, run_04, run_05, run_06, run_07, run_08,
        run_09, run_10, run_11, run_12, run_13, run_14, run_15
    FROM holdfast_stats_series
    WHERE level = :level AND at >= :start AND at < :until
    UNION ALL
    SELECT
        minute, queue_name, task_name, sent, completed, failed, cancelled, stalled, expired,
        dropped, retried, snoozed, interrupted, other, wait_us, run_us, wait_00, wait_01, wait_02,
        wait_03, wait_04, wait_05, wait_06, wait_07, wait_08, wait_09, wait_10, wait_11, wait_12,
        wait_13, wait_14, wait_15, run_00, run_01, run_02, run_03, run_04, run_05, run_06, run_07,
        run_08, run_09, run_10, run_11, run_12, run_13, run_14, run_15
    FROM holdfast_stats
    WHERE minute >= :start AND minute < :until
) AS counted
WHERE (:queue_name IS NULL OR queue_name = :queue_name)
    AND (:task_name IS NULL OR task_name = :task_name)
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3;
