-- Forget workers that have been gone for long. Leases never refer to this table.
-- Differs from PostgreSQL: the writer is alone.
DELETE FROM holdfast_workers WHERE seen_at < :before RETURNING 1;
