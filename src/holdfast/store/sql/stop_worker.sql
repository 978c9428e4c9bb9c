-- A worker says goodbye.
UPDATE holdfast_workers
SET stopped_at = :now, seen_at = :now
WHERE worker_id = :worker_id AND stopped_at IS NULL;
