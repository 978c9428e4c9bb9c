-- renew: the leases that are still there live on. One that is not returned is lost, whatever its
-- clock said. Differs from PostgreSQL: the writer is alone, and how a batch is bound.
UPDATE holdfast_leases
SET expires_at = :now + :lease_us
WHERE token IN (SELECT value FROM json_each(:tokens))
RETURNING CAST(token AS BLOB) AS token, 1 AS renewed;
