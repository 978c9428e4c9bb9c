-- Retention of depths of one level, in batches. Differs from PostgreSQL: rows are found by their key.
DELETE FROM holdfast_depths
WHERE (level, at, queue_name) IN (
    SELECT level, at, queue_name FROM holdfast_depths
    WHERE level = :level AND at < :before ORDER BY at LIMIT :batch
)
RETURNING 1;
