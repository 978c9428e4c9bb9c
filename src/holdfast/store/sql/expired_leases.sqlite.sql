-- Leases that ended before :before, and that nobody has recovered, by worker.
-- Differs from PostgreSQL in types.
SELECT worker_id, count(*), min(expires_at)
FROM holdfast_leases
WHERE expires_at < :before
GROUP BY worker_id
ORDER BY min(expires_at), worker_id;
