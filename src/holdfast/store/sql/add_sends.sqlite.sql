-- Add to what was sent in each minute. Differs from PostgreSQL in how rows are bound.
INSERT INTO holdfast_stats AS stats (minute, worker_id, queue_name, task_name, sent)
VALUES (:minute, :worker_id, :queue_name, :task_name, :sent)
ON CONFLICT (minute, worker_id, queue_name, task_name) DO UPDATE
SET sent = stats.sent + excluded.sent;
