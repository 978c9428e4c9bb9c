-- What was ever counted, by queue and task: what has been added up, and what has not been yet. So
-- many tasks are told by name, the same as `fold_stats` keeps, and the rest as '(other)'.
-- Differs from SQLite in its types.
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
