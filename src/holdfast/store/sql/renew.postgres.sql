-- renew: the leases that are still there live on. One that is not returned is lost, whatever its
-- clock said. Differs from SQLite in how a batch is bound.
UPDATE holdfast_leases
SET expires_at = :now + :lease_us::bigint * interval '1 microsecond'
WHERE token = ANY (:tokens::uuid[])
RETURNING token;
