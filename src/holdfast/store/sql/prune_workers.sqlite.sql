-- Forget workers that have been gone for long. Leases never refer to this table.
-- Differs from PostgreSQL in its types.
DELETE FROM holdfast_workers WHERE seen_at < :before RETURNING worker_id;
