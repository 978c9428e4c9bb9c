-- Which limits the code of other live workers declares.
-- Differs from SQLite in how times are added.
SELECT DISTINCT limits
FROM holdfast_workers
WHERE limits IS NOT NULL AND stopped_at IS NULL AND worker_id <> :worker_id
    AND seen_at + lease_us * interval '1 microsecond' > :now;
