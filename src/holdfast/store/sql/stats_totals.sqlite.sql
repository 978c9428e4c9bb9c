-- What was ever counted, by queue and task: what has been added up, and what has not been yet. So
-- many tasks are told by name, the same as `fold_stats` keeps, and the rest as '(other)'.
-- Differs from PostgreSQL in its types.
WITH known AS (
    SELECT queue_name, task_name FROM holdfast_stats_series
    WHERE level = 'ever' AND task_name <> '(other)'
),
named AS (
    SELECT
        queue_name, task_name,
        row_number() OVER (ORDER BY queue_name, task_name)
        <= :most_names - (SELECT count(*) FROM known) AS is_named
    FROM (
        SELECT queue_name, task_name FROM holdfast_stats
        EXCEPT SELECT queue_name, task_name FROM known
    ) AS fresh
)
SELECT
    0, queue_name, task_name,
    sum(sent), sum(completed), sum(failed), sum(cancelled), sum(stalled), sum(expired),
    sum(dropped), sum(retried), sum(snoozed), sum(interrupted), sum(other), sum(wait_us),
    sum(run_us), sum(wait_00), sum(wait_01), sum(wait_02), sum(wait_03), sum(wait_04), sum(wait_05),
    sum(wait_06), sum(wait_07), sum(wait_08), sum(wait_09), sum(wait_10), sum(wait_11),
    sum(wait_12), sum(wait_13), sum(wait_14), sum(wait_15), sum(run_00), sum(run_01), sum(run_02),
    sum(run_03), sum(run_04), sum(run_05), sum(run_06), sum(run_07), sum(run_08), sum(run_09),
    sum(run_10), sum(run_11), sum(run_12), sum(run_13), sum(run_14), sum(run_15)
FROM (
    SELECT
        queue_name, task_name, sent, completed, failed, cancelled, stalled, expired, dropped,
        retried, snoozed, interrupted, other, wait_us, run_us, wait_00, wait_01, wait_02, wait_03,
        wait_04, wait_05, wait_06, wait_07, wait_08, wait_09, wait_10, wait_11, wait_12, wait_13,
        wait_14, wait_15, run_00, run_01, run_02, run_03, run_04, run_05, run_06, run_07, run_08,
        run_09, run_10, run_11, run_12, run_13, run_14, run_15
    FROM holdfast_stats_series
    WHERE level = 'ever'
    UNION ALL
    SELECT
        CASE
            WHEN NOT named.is_named
                AND NOT EXISTS (SELECT 1 FROM known WHERE known.queue_name = stats.queue_name)
                THEN '(other)'
            ELSE stats.queue_name
        END,
        CASE WHEN NOT named.is_named THEN '(other)' ELSE stats.task_name END,
        sent, completed, failed, cancelled, stalled, expired, dropped, retried, snoozed,
        interrupted, other, wait_us, run_us, wait_00, wait_01, wait_02, wait_03, wait_04, wait_05,
        wait_06, wait_07, wait_08, wait_09, wait_10, wait_11, wait_12, wait_13, wait_14, wait_15,
        run_00, run_01, run_02, run_03, run_04, run_05, run_06, run_07, run_08, run_09, run_10,
        run_11, run_12, run_13, run_14, run_15
    FROM holdfast_stats AS stats
    LEFT JOIN named ON named.queue_name = stats.queue_name AND named.task_name = stats.task_name
) AS counted
GROUP BY queue_name, task_name
ORDER BY queue_name, task_name;
