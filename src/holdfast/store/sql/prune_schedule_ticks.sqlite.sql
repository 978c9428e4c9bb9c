-- What became of old ticks is forgotten, and the schedules remember that they have forgotten.
-- Differs from PostgreSQL: several statements.
UPDATE holdfast_schedules
SET history_from = max(ifnull(history_from, forgotten.tick), forgotten.tick)
FROM (
    SELECT schedule_name, max(tick) AS tick
    FROM (
        SELECT schedule_name, tick, status
        FROM holdfast_schedule_ticks
        WHERE noted_at < :before AND status <> 'waiting'
        ORDER BY noted_at, schedule_name, tick
        LIMIT :batch
    )
    WHERE status = 'fired'
    GROUP BY schedule_name
) AS forgotten
WHERE holdfast_schedules.schedule_name = forgotten.schedule_name;
DELETE FROM holdfast_schedule_ticks
WHERE (schedule_name, tick) IN (
    SELECT schedule_name, tick
    FROM holdfast_schedule_ticks
    WHERE noted_at < :before AND status <> 'waiting'
    ORDER BY noted_at, schedule_name, tick
    LIMIT :batch
);
SELECT changes();
