-- Add to what was sent in each minute. Differs from SQLite in how rows are bound.
INSERT INTO holdfast_stats AS stats (minute, worker_id, queue_name, task_name, sent)
SELECT minute, worker_id, queue_name, task_name, sent
FROM
    unnest(
        :minute::timestamptz[], :worker_id::text[], :queue_name::text[], :task_name::text[],
        :sent::bigint[]
    ) AS row (minute, worker_id, queue_name, task_name, sent)
ON CONFLICT (minute, worker_id, queue_name, task_name) DO UPDATE
SET sent = stats.sent + excluded.sent;
