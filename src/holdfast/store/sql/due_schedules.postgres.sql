-- The schedules that have a tick to be looked at: one that is due, or one that waits for the prior run
-- which has ended (`run_is_live`); and of the others the first that will be. (now, name, its tick or
-- null, whether it is to be looked at, whether any tick waits.)
-- Differs from SQLite in types, and in how a batch is bound.
SELECT :now, schedule_name, next_run_at, true, false
FROM (
    SELECT schedule_name, next_run_at
    FROM holdfast_schedules
    WHERE next_run_at <= :now AND paused_at IS NULL AND stopped_at IS NULL
        AND schedule_name <> ALL (:aside::text[])
    ORDER BY next_run_at
    LIMIT :limit
) AS due
UNION ALL
SELECT :now, schedule_name, NULL, true, false
FROM (
    SELECT schedule_name
    FROM holdfast_schedules
    WHERE has_waiting AND paused_at IS NULL AND stopped_at IS NULL
        AND (next_run_at IS NULL OR next_run_at > :now)
        AND schedule_name <> ALL (:aside::text[])
        AND (overlap = 'allow' OR NOT (
            EXISTS (SELECT FROM holdfast_tasks WHERE id = last_task_id AND finished_at IS NULL)
            OR EXISTS (
                SELECT FROM holdfast_workflows
                WHERE workflow_id = last_task_id AND finished_at IS NULL
            )
        ))
    ORDER BY schedule_name
    LIMIT :limit
) AS waiting
UNION ALL
SELECT
    :now, NULL, min(next_run_at), false,
    EXISTS (
        SELECT
        FROM holdfast_schedules
        WHERE has_waiting AND paused_at IS NULL AND stopped_at IS NULL
            AND schedule_name <> ALL (:aside::text[])
    )
FROM holdfast_schedules
WHERE next_run_at > :now AND paused_at IS NULL AND stopped_at IS NULL
    AND schedule_name <> ALL (:aside::text[]);
