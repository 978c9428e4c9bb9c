-- Schedules that should have fired before :before. Differs from PostgreSQL in types.
SELECT schedule_name, next_run_at
FROM holdfast_schedules
WHERE next_run_at < :before
ORDER BY next_run_at
LIMIT 100;
