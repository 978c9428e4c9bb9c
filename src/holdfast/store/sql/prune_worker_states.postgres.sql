-- Retention of snapshots, in batches. Differs from SQLite: rows are found by ctid, and those that
-- another transaction holds are left for the next time.
DELETE FROM holdfast_worker_states
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast_worker_states
    WHERE snapshot_at < :before::timestamptz LIMIT :batch::int
    FOR UPDATE SKIP LOCKED
))
RETURNING worker_id;
