-- A worker says which schedules its code declares.
-- Differs from SQLite in its types.
UPDATE holdfast_workers SET schedules = :schedules
WHERE worker_id = :worker_id AND schedules IS DISTINCT FROM :schedules::text;
