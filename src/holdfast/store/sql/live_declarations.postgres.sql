-- Which schedules live workers declare.
-- Differs from SQLite in how times are added.
SELECT DISTINCT schedules
FROM holdfast_workers
WHERE schedules IS NOT NULL AND stopped_at IS NULL
    AND seen_at + lease_us * interval '1 microsecond' > :now;
