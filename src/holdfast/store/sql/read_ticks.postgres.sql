-- What became of the ticks of a schedule, the newest first.
-- Differs from SQLite in its types.
SELECT schedule_name, tick, status, cause, task_id, noted_at
FROM holdfast_schedule_ticks
WHERE schedule_name = :name
    AND (:before_tick::timestamptz IS NULL OR tick < :before_tick::timestamptz)
ORDER BY tick DESC
LIMIT :limit;
