-- Retention of snapshots, in batches. Differs from PostgreSQL: rows are found by their key.
DELETE FROM holdfast_worker_states
WHERE (worker_id, snapshot_at) IN (
    SELECT worker_id, snapshot_at FROM holdfast_worker_states
    WHERE snapshot_at < :before LIMIT :batch
)
RETURNING 1;
