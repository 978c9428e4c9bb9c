-- Add the counters of all workers up to a minute to those of that minute, hour and day, and to those
-- for ever, and remove them: what is read is the sum of both, before and after. For ever, only so
-- many tasks are counted by name, and what comes after them under '(other)'.
-- Differs from PostgreSQL: two statements.
-- A sum is kept between 0 and 4 * 10^18: rows written by hand may hold numbers that overflow,
-- and total(), unlike sum(), takes them (it is exact up to 2^53).
WITH gone AS (
    SELECT * FROM holdfast_stats WHERE minute < :before
),
known AS (
    SELECT queue_name, task_name FROM holdfast_stats_series
    WHERE level = 'ever' AND task_name <> '(other)'
),
named AS (
    SELECT
        queue_name, task_name,
        row_number() OVER (ORDER BY queue_name, task_name)
        <= :most_names - (SELECT count(*) FROM known) AS is_named
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
    step.column1,
    gone.minute / step.column2 * step.column2,
    CASE
        WHEN step.column1 = 'ever' AND NOT named.is_named
            AND NOT EXISTS (SELECT 1 FROM known WHERE known.queue_name = gone.queue_name)
            THEN '(other)'
        ELSE gone.queue_name
    END,
    CASE WHEN step.column1 = 'ever' AND NOT named.is_named THEN '(other)' ELSE gone.task_name END,
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
FROM gone
LEFT JOIN named ON named.queue_name = gone.queue_name AND named.task_name = gone.task_name
CROSS JOIN (
    VALUES ('minute', 60000000), ('hour', 3600000000), ('day', 86400000000),
        ('ever', 9000000000000000000)
) AS step
WHERE true
GROUP BY 1, 2, 3, 4
ON CONFLICT (level, at, queue_name, task_name) DO UPDATE
SET sent = min(series.sent, 4000000000000000000) + excluded.sent,
    completed = min(series.completed, 4000000000000000000) + excluded.completed,
    failed = min(series.failed, 4000000000000000000) + excluded.failed,
    cancelled = min(series.cancelled, 4000000000000000000) + excluded.cancelled,
    stalled = min(series.stalled, 4000000000000000000) + excluded.stalled,
    expired = min(series.expired, 4000000000000000000) + excluded.expired,
    dropped = min(series.dropped, 4000000000000000000) + excluded.dropped,
    retried = min(series.retried, 4000000000000000000) + excluded.retried,
    snoozed = min(series.snoozed, 4000000000000000000) + excluded.snoozed,
    interrupted = min(series.interrupted, 4000000000000000000) + excluded.interrupted,
    other = min(series.other, 4000000000000000000) + excluded.other,
    wait_us = min(series.wait_us, 4000000000000000000) + excluded.wait_us,
    run_us = min(series.run_us, 4000000000000000000) + excluded.run_us,
    wait_00 = min(series.wait_00, 4000000000000000000) + excluded.wait_00,
    wait_01 = min(series.wait_01, 4000000000000000000) + excluded.wait_01,
    wait_02 = min(series.wait_02, 4000000000000000000) + excluded.wait_02,
    wait_03 = min(series.wait_03, 4000000000000000000) + excluded.wait_03,
    wait_04 = min(series.wait_04, 4000000000000000000) + excluded.wait_04,
    wait_05 = min(series.wait_05, 4000000000000000000) + excluded.wait_05,
    wait_06 = min(series.wait_06, 4000000000000000000) + excluded.wait_06,
    wait_07 = min(series.wait_07, 4000000000000000000) + excluded.wait_07,
    wait_08 = min(series.wait_08, 4000000000000000000) + excluded.wait_08,
    wait_09 = min(series.wait_09, 4000000000000000000) + excluded.wait_09,
    wait_10 = min(series.wait_10, 4000000000000000000) + excluded.wait_10,
    wait_11 = min(series.wait_11, 4000000000000000000) + excluded.wait_11,
    wait_12 = min(series.wait_12, 4000000000000000000) + excluded.wait_12,
    wait_13 = min(series.wait_13, 4000000000000000000) + excluded.wait_13,
    wait_14 = min(series.wait_14, 4000000000000000000) + excluded.wait_14,
    wait_15 = min(series.wait_15, 4000000000000000000) + excluded.wait_15,
    run_00 = min(series.run_00, 4000000000000000000) + excluded.run_00,
    run_01 = min(series.run_01, 4000000000000000000) + excluded.run_01,
    run_02 = min(series.run_02, 4000000000000000000) + excluded.run_02,
    run_03 = min(series.run_03, 4000000000000000000) + excluded.run_03,
    run_04 = min(series.run_04, 4000000000000000000) + excluded.run_04,
    run_05 = min(series.run_05, 4000000000000000000) + excluded.run_05,
    run_06 = min(series.run_06, 4000000000000000000) + excluded.run_06,
    run_07 = min(series.run_07, 4000000000000000000) + excluded.run_07,
    run_08 = min(series.run_08, 4000000000000000000) + excluded.run_08,
    run_09 = min(series.run_09, 4000000000000000000) + excluded.run_09,
    run_10 = min(series.run_10, 4000000000000000000) + excluded.run_10,
    run_11 = min(series.run_11, 4000000000000000000) + excluded.run_11,
    run_12 = min(series.run_12, 4000000000000000000) + excluded.run_12,
    run_13 = min(series.run_13, 4000000000000000000) + excluded.run_13,
    run_14 = min(series.run_14, 4000000000000000000) + excluded.run_14,
    run_15 = min(series.run_15, 4000000000000000000) + excluded.run_15;
DELETE FROM holdfast_stats WHERE minute < :before;
