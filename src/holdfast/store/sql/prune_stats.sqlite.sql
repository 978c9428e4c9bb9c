-- Retention of counters, in batches. Differs from PostgreSQL: rows are found by their key.
DELETE FROM holdfast_stats
WHERE (minute, worker_id, queue_name, task_name) IN (
    SELECT minute, worker_id, queue_name, task_name FROM holdfast_stats
    WHERE minute < :before ORDER BY minute LIMIT :batch
)
RETURNING 1;
