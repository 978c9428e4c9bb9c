-- The schedules that have a tick to be looked at: one that is due, or waits for the prior run; and
-- of the others the first that will be. (now, name, its tick or null, whether it is to be looked at.)
-- Differs from PostgreSQL in how a batch is bound.
SELECT :now, schedule_name, next_run_at, 1
FROM (
    SELECT schedule_name, next_run_at
    FROM holdfast_schedules
    WHERE next_run_at <= :now AND paused_at IS NULL AND stopped_at IS NULL
        AND schedule_name NOT IN (SELECT value FROM json_each(:aside))
    ORDER BY next_run_at
    LIMIT :limit
)
UNION ALL
SELECT :now, schedule_name, NULL, 1
FROM (
    SELECT schedule_name
    FROM holdfast_schedules
    WHERE has_waiting AND paused_at IS NULL AND stopped_at IS NULL
        AND (next_run_at IS NULL OR next_run_at > :now)
        AND schedule_name NOT IN (SELECT value FROM json_each(:aside))
    ORDER BY schedule_name
    LIMIT :limit
)
UNION ALL
SELECT :now, NULL, min(next_run_at), 0
FROM holdfast_schedules
WHERE next_run_at > :now AND paused_at IS NULL AND stopped_at IS NULL
    AND schedule_name NOT IN (SELECT value FROM json_each(:aside));
