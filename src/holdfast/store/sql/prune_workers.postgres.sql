-- Forget workers that have been gone for long. Leases never refer to this table.
-- Differs from SQLite in its types.
DELETE FROM holdfast_workers WHERE seen_at < :before::timestamptz RETURNING worker_id;
