-- What was ever counted, by queue and task: what has been added up, and what has not been yet. So
-- many tasks are told by name, the same as `fold_stats` keeps, and the rest as '(other)'.
-- Differs from SQLite in its types.
-- A sum is kept between 0 and 4 * 10^18: rows written by hand may hold numbers that overflow.
WITH known AS (
    SELECT queue_name, task_name FROM holdfast_stats_series
    WHERE level = 'ever' AND task_name <> '(other)'
),
named AS (
    SELECT
        queue_name, task_name,
        row_number() OVER (ORDER BY queue_name, task_name)
        <= :most_names::bigint - (SELECT count(*) FROM known) AS is_named
    FROM (
        SELECT queue_name, task_name FROM holdfast_stats
        EXCEPT SELECT queue_name, task_name FROM known
    ) AS fresh
)
SELECT
    0, queue_name, task_name,
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
