-- A worker says which schedules its code declares.
-- Differs from PostgreSQL in its types.
UPDATE holdfast_workers SET schedules = :schedules
WHERE worker_id = :worker_id AND schedules IS NOT :schedules;
