-- Forget workers that have been gone for long. Leases never refer to this table.
-- Differs from SQLite: a row that another transaction holds is left for the next time.
DELETE FROM holdfast_workers
WHERE worker_id = ANY (ARRAY(
    SELECT worker_id FROM holdfast_workers
    WHERE seen_at < :before::timestamptz
    FOR UPDATE SKIP LOCKED
))
RETURNING worker_id;
