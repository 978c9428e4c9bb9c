-- Add the counters of all workers up to a minute to those of that minute, hour and day, and to those
-- for ever, and remove them: what is read is the sum of both, before and after. For ever, only so
-- many tasks are counted by name, and what comes after them under '(other)'.
-- Differs from SQLite, which has no data-modifying CTE.
-- A sum is kept between 0 and 4 * 10^18: rows written by hand may hold numbers that overflow.
WITH gone AS (
    DELETE FROM holdfast_stats WHERE minute < :before::timestamptz RETURNING *
),
known AS (
    SELECT queue_name, task_name FROM holdfast_stats_series
    WHERE level = 'ever' AND task_name <> '(other)'
),
named AS (
    SELECT
        queue_name, task_name,
        row_number() OVER (ORDER BY queue_name, task_name)
        <= :most_names::bigint - (SELECT count(*) FROM known) AS is_named
    FROM (
        SELECT queue_name, task_name FROM gone
        EXCEPT SELECT queue_name, task_name FROM known
    ) AS fresh
)
INSERT INTO holdfast_stats_series AS series (
    level, at, queue_name, task_name, sent, completed, failed, cancelled, stalled, expired, dropped,
    retried, snoozed, interrupted, other, wait_us, run_us, wait_00, wait_01, wait_02, wait_03,
    wait_04, wait_05, wait_06, wait_07, wait_08, wait_09, wait_10, wait_11, wait_12, wait_13,
    wait_14, wait_15, run_00, run_01, run_02, run_03, run_04, run_05, run_06, run_07, run_08,
    run_09, run_10, run_11, run_12, run_13, run_14, run_15
)
SELECT
    step.level,
    CASE step.level WHEN 'ever' THEN to_timestamp(0)
        ELSE date_trunc(step.level, gone.minute, 'UTC') END,
    CASE
        WHEN step.level = 'ever' AND NOT named.is_named
            AND NOT EXISTS (SELECT 1 FROM known WHERE known.queue_name = gone.queue_name)
            THEN '(other)'
        ELSE gone.queue_name
    END,
    CASE WHEN step.level = 'ever' AND NOT named.is_named THEN '(other)' ELSE gone.task_name END,
    greatest(least(sum(sent), 4000000000000000000), 0)::bigint,
    greatest(least(sum(completed), 4000000000000000000), 0)::bigint,
    greatest(least(sum(failed), 4000000000000000000), 0)::bigint,
    greatest(least(sum(cancelled), 4000000000000000000), 0)::bigint,
    greatest(least(sum(stalled), 4000000000000000000), 0)::bigint,
    greatest(least(sum(expired), 4000000000000000000), 0)::bigint,
    greatest(least(sum(dropped), 4000000000000000000), 0)::bigint,
    greatest(least(sum(retried), 4000000000000000000), 0)::bigint,
    greatest(least(sum(snoozed), 4000000000000000000), 0)::bigint,
    greatest(least(sum(interrupted), 4000000000000000000), 0)::bigint,
    greatest(least(sum(other), 4000000000000000000), 0)::bigint,
    greatest(least(sum(wait_us), 4000000000000000000), 0)::bigint,
    greatest(least(sum(run_us), 4000000000000000000), 0)::bigint,
    greatest(least(sum(wait_00), 4000000000000000000), 0)::bigint,
    greatest(least(sum(wait_01), 4000000000000000000), 0)::bigint,
    greatest(least(sum(wait_02), 4000000000000000000), 0)::bigint,
    greatest(least(sum(wait_03), 4000000000000000000), 0)::bigint,
    greatest(least(sum(wait_04), 4000000000000000000), 0)::bigint,
    greatest(least(sum(wait_05), 4000000000000000000), 0)::bigint,
    greatest(least(sum(wait_06), 4000000000000000000), 0)::bigint,
    greatest(least(sum(wait_07), 4000000000000000000), 0)::bigint,
    greatest(least(sum(wait_08), 4000000000000000000), 0)::bigint,
    greatest(least(sum(wait_09), 4000000000000000000), 0)::bigint,
    greatest(least(sum(wait_10), 4000000000000000000), 0)::bigint,
    greatest(least(sum(wait_11), 4000000000000000000), 0)::bigint,
    greatest(least(sum(wait_12), 4000000000000000000), 0)::bigint,
    greatest(least(sum(wait_13), 4000000000000000000), 0)::bigint,
    greatest(least(sum(wait_14), 4000000000000000000), 0)::bigint,
    greatest(least(sum(wait_15), 4000000000000000000), 0)::bigint,
    greatest(least(sum(run_00), 4000000000000000000), 0)::bigint,
    greatest(least(sum(run_01), 4000000000000000000), 0)::bigint,
    greatest(least(sum(run_02), 4000000000000000000), 0)::bigint,
    greatest(least(sum(run_03), 4000000000000000000), 0)::bigint,
    greatest(least(sum(run_04), 4000000000000000000), 0)::bigint,
    greatest(least(sum(run_05), 4000000000000000000), 0)::bigint,
    greatest(least(sum(run_06), 4000000000000000000), 0)::bigint,
    greatest(least(sum(run_07), 4000000000000000000), 0)::bigint,
    greatest(least(sum(run_08), 4000000000000000000), 0)::bigint,
    greatest(least(sum(run_09), 4000000000000000000), 0)::bigint,
    greatest(least(sum(run_10), 4000000000000000000), 0)::bigint,
    greatest(least(sum(run_11), 4000000000000000000), 0)::bigint,
    greatest(least(sum(run_12), 4000000000000000000), 0)::bigint,
    greatest(least(sum(run_13), 4000000000000000000), 0)::bigint,
    greatest(least(sum(run_14), 4000000000000000000), 0)::bigint,
    greatest(least(sum(run_15), 4000000000000000000), 0)::bigint
FROM gone
LEFT JOIN named ON named.queue_name = gone.queue_name AND named.task_name = gone.task_name
CROSS JOIN (VALUES ('minute'), ('hour'), ('day'), ('ever')) AS step (level)
GROUP BY 1, 2, 3, 4
ORDER BY 1, 2, 3, 4
ON CONFLICT (level, at, queue_name, task_name) DO UPDATE
SET sent = least(series.sent, 4000000000000000000) + excluded.sent,
    completed = least(series.completed, 4000000000000000000) + excluded.completed,
    failed = least(series.failed, 4000000000000000000) + excluded.failed,
    cancelled = least(series.cancelled, 4000000000000000000) + excluded.cancelled,
    stalled = least(series.stalled, 4000000000000000000) + excluded.stalled,
    expired = least(series.expired, 4000000000000000000) + excluded.expired,
    dropped = least(series.dropped, 4000000000000000000) + excluded.dropped,
    retried = least(series.retried, 4000000000000000000) + excluded.retried,
    snoozed = least(series.snoozed, 4000000000000000000) + excluded.snoozed,
    interrupted = least(series.interrupted, 4000000000000000000) + excluded.interrupted,
    other = least(series.other, 4000000000000000000) + excluded.other,
    wait_us = least(series.wait_us, 4000000000000000000) + excluded.wait_us,
    run_us = least(series.run_us, 4000000000000000000) + excluded.run_us,
    wait_00 = least(series.wait_00, 4000000000000000000) + excluded.wait_00,
    wait_01 = least(series.wait_01, 4000000000000000000) + excluded.wait_01,
    wait_02 = least(series.wait_02, 4000000000000000000) + excluded.wait_02,
    wait_03 = least(series.wait_03, 4000000000000000000) + excluded.wait_03,
    wait_04 = least(series.wait_04, 4000000000000000000) + excluded.wait_04,
    wait_05 = least(series.wait_05, 4000000000000000000) + excluded.wait_05,
    wait_06 = least(series.wait_06, 4000000000000000000) + excluded.wait_06,
    wait_07 = least(series.wait_07, 4000000000000000000) + excluded.wait_07,
    wait_08 = least(series.wait_08, 4000000000000000000) + excluded.wait_08,
    wait_09 = least(series.wait_09, 4000000000000000000) + excluded.wait_09,
    wait_10 = least(series.wait_10, 4000000000000000000) + excluded.wait_10,
    wait_11 = least(series.wait_11, 4000000000000000000) + excluded.wait_11,
    wait_12 = least(series.wait_12, 4000000000000000000) + excluded.wait_12,
    wait_13 = least(series.wait_13, 4000000000000000000) + excluded.wait_13,
    wait_14 = least(series.wait_14, 4000000000000000000) + excluded.wait_14,
    wait_15 = least(series.wait_15, 4000000000000000000) + excluded.wait_15,
    run_00 = least(series.run_00, 4000000000000000000) + excluded.run_00,
    run_01 = least(series.run_01, 4000000000000000000) + excluded.run_01,
    run_02 = least(series.run_02, 4000000000000000000) + excluded.run_02,
    run_03 = least(series.run_03, 4000000000000000000) + excluded.run_03,
    run_04 = least(series.run_04, 4000000000000000000) + excluded.run_04,
    run_05 = least(series.run_05, 4000000000000000000) + excluded.run_05,
    run_06 = least(series.run_06, 4000000000000000000) + excluded.run_06,
    run_07 = least(series.run_07, 4000000000000000000) + excluded.run_07,
    run_08 = least(series.run_08, 4000000000000000000) + excluded.run_08,
    run_09 = least(series.run_09, 4000000000000000000) + excluded.run_09,
    run_10 = least(series.run_10, 4000000000000000000) + excluded.run_10,
    run_11 = least(series.run_11, 4000000000000000000) + excluded.run_11,
    run_12 = least(series.run_12, 4000000000000000000) + excluded.run_12,
    run_13 = least(series.run_13, 4000000000000000000) + excluded.run_13,
    run_14 = least(series.run_14, 4000000000000000000) + excluded.run_14,
    run_15 = least(series.run_15, 4000000000000000000) + excluded.run_15;
