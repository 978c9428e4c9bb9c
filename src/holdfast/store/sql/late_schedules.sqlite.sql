-- Schedules that should have fired before :before. Differs from PostgreSQL in types.
SELECT schedule_name, next_run_at
FROM holdfast_schedules
WHERE next_run_at < :before
    AND paused_at IS NULL
    AND stopped_at IS NULL
ORDER BY next_run_at
LIMIT 100;
