-- What became of old ticks is forgotten, and the schedules remember that they have forgotten.
-- Differs from SQLite: one statement.
WITH gone AS (
    DELETE FROM holdfast_schedule_ticks
    WHERE (schedule_name, tick) IN (
        SELECT schedule_name, tick
        FROM holdfast_schedule_ticks
        WHERE noted_at < :before::timestamptz AND status <> 'waiting'
        ORDER BY noted_at
        LIMIT :batch
    )
    RETURNING schedule_name, tick, status
), moved AS (
    UPDATE holdfast_schedules AS schedule
    SET history_from = greatest(schedule.history_from, forgotten.tick)
    FROM (
        SELECT schedule_name, max(tick) AS tick
        FROM gone WHERE status = 'fired' GROUP BY schedule_name
    ) AS forgotten
    WHERE schedule.schedule_name = forgotten.schedule_name
)
SELECT count(*) FROM gone;
