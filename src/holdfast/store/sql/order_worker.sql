-- Give a worker an order; it reads it by itself. One that has stopped gets none.
UPDATE holdfast_workers
SET command = :command
WHERE worker_id = :worker_id AND stopped_at IS NULL
RETURNING 1;
