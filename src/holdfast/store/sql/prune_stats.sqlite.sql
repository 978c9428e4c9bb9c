-- Retention of counters of one level, in batches. Differs from PostgreSQL: rows are found by their key.
DELETE FROM holdfast_stats_series
WHERE (level, at, queue_name, task_name) IN (
    SELECT level, at, queue_name, task_name FROM holdfast_stats_series
    WHERE level = :level AND at < :before ORDER BY at LIMIT :batch
)
RETURNING 1;
