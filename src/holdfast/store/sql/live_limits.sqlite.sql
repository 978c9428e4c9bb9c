-- Which limits the code of other live workers declares.
-- Differs from PostgreSQL in how times are added.
SELECT DISTINCT limits
FROM holdfast_workers
WHERE limits IS NOT NULL AND stopped_at IS NULL AND worker_id <> :worker_id
    AND seen_at + lease_us > :now;
