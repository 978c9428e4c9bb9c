-- A worker says goodbye; an order it had is obeyed.
UPDATE holdfast_workers
SET stopped_at = :now, seen_at = :now, command = NULL
WHERE worker_id = :worker_id AND stopped_at IS NULL;
