-- Add the counters of all workers up to a minute to those of that minute, hour and day, and to those
-- for ever, and remove them: what is read is the sum of both, before and after. For ever, only so
-- many tasks are counted by name, and what comes after them under '(other)'.
-- Differs from PostgreSQL: two statements.
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
    sum(sent), sum(completed), sum(failed), sum(cancelled), sum(stalled), sum(expired),
    sum(dropped), sum(retried), sum(snoozed), sum(interrupted), sum(other), sum(wait_us),
    sum(run_us), sum(wait_00), sum(wait_01), sum(wait_02), sum(wait_03), sum(wait_04), sum(wait_05),
    sum(wait_06), sum(wait_07), sum(wait_08), sum(wait_09), sum(wait_10), sum(wait_11),
    sum(wait_12), sum(wait_13), sum(wait_14), sum(wait_15), sum(run_00), sum(run_01), sum(run_02),
    sum(run_03), sum(run_04), sum(run_05), sum(run_06), sum(run_07), sum(run_08), sum(run_09),
    sum(run_10), sum(run_11), sum(run_12), sum(run_13), sum(run_14), sum(run_15)
FROM gone
LEFT JOIN named ON named.queue_name = gone.queue_name AND named.task_name = gone.task_name
CROSS JOIN (
    VALUES ('minute', 60000000), ('hour', 3600000000), ('day', 86400000000),
        ('ever', 9000000000000000000)
) AS step
WHERE true
GROUP BY 1, 2, 3, 4
ON CONFLICT (level, at, queue_name, task_name) DO UPDATE
SET sent = series.sent + excluded.sent,
    completed = series.completed + excluded.completed,
    failed = series.failed + excluded.failed,
    cancelled = series.cancelled + excluded.cancelled,
    stalled = series.stalled + excluded.stalled,
    expired = series.expired + excluded.expired,
    dropped = series.dropped + excluded.dropped,
    retried = series.retried + excluded.retried,
    snoozed = series.snoozed + excluded.snoozed,
    interrupted = series.interrupted + excluded.interrupted,
    other = series.other + excluded.other,
    wait_us = series.wait_us + excluded.wait_us,
    run_us = series.run_us + excluded.run_us,
    wait_00 = series.wait_00 + excluded.wait_00,
    wait_01 = series.wait_01 + excluded.wait_01,
    wait_02 = series.wait_02 + excluded.wait_02,
    wait_03 = series.wait_03 + excluded.wait_03,
    wait_04 = series.wait_04 + excluded.wait_04,
    wait_05 = series.wait_05 + excluded.wait_05,
    wait_06 = series.wait_06 + excluded.wait_06,
    wait_07 = series.wait_07 + excluded.wait_07,
    wait_08 = series.wait_08 + excluded.wait_08,
    wait_09 = series.wait_09 + excluded.wait_09,
    wait_10 = series.wait_10 + excluded.wait_10,
    wait_11 = series.wait_11 + excluded.wait_11,
    wait_12 = series.wait_12 + excluded.wait_12,
    wait_13 = series.wait_13 + excluded.wait_13,
    wait_14 = series.wait_14 + excluded.wait_14,
    wait_15 = series.wait_15 + excluded.wait_15,
    run_00 = series.run_00 + excluded.run_00,
    run_01 = series.run_01 + excluded.run_01,
    run_02 = series.run_02 + excluded.run_02,
    run_03 = series.run_03 + excluded.run_03,
    run_04 = series.run_04 + excluded.run_04,
    run_05 = series.run_05 + excluded.run_05,
    run_06 = series.run_06 + excluded.run_06,
    run_07 = series.run_07 + excluded.run_07,
    run_08 = series.run_08 + excluded.run_08,
    run_09 = series.run_09 + excluded.run_09,
    run_10 = series.run_10 + excluded.run_10,
    run_11 = series.run_11 + excluded.run_11,
    run_12 = series.run_12 + excluded.run_12,
    run_13 = series.run_13 + excluded.run_13,
    run_14 = series.run_14 + excluded.run_14,
    run_15 = series.run_15 + excluded.run_15;
DELETE FROM holdfast_stats WHERE minute < :before;
