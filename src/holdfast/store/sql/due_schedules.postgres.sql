-- The schedules that have a tick to be looked at: one that is due, or waits for the prior run; and
-- of the others the first that will be. (now, name, its tick or null, whether it is to be looked at.)
-- Differs from SQLite in how a batch is bound.
SELECT :now, schedule_name, next_run_at, true
FROM (
    SELECT schedule_name, next_run_at
    FROM holdfast_schedules
    WHERE next_run_at <= :now AND paused_at IS NULL AND stopped_at IS NULL
        AND schedule_name <> ALL (:aside::text[])
    ORDER BY next_run_at
    LIMIT :limit
) AS due
UNION ALL
SELECT :now, schedule_name, NULL, true
FROM (
    SELECT schedule_name
    FROM holdfast_schedules
    WHERE has_waiting AND paused_at IS NULL AND stopped_at IS NULL
        AND (next_run_at IS NULL OR next_run_at > :now)
        AND schedule_name <> ALL (:aside::text[])
    ORDER BY schedule_name
    LIMIT :limit
) AS waiting
UNION ALL
SELECT :now, NULL, min(next_run_at), false
FROM holdfast_schedules
WHERE next_run_at > :now AND paused_at IS NULL AND stopped_at IS NULL
    AND schedule_name <> ALL (:aside::text[]);
