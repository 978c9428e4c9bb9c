-- What became of the ticks of a schedule, the newest first.
-- Differs from PostgreSQL in its types.
SELECT schedule_name, tick, status, cause, task_id, noted_at
FROM holdfast_schedule_ticks
WHERE schedule_name = :name AND (:before_tick IS NULL OR tick < :before_tick)
ORDER BY tick DESC
LIMIT :limit;
