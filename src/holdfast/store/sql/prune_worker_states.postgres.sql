-- Retention of snapshots, in batches. Differs from SQLite: rows are found by ctid.
DELETE FROM holdfast_worker_states
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast_worker_states
    WHERE snapshot_at < :before::timestamptz LIMIT :batch::int
))
RETURNING worker_id;
