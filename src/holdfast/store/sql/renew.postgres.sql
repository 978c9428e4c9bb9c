-- renew: the leases that are still there live on. One that is not returned is lost, whatever its
-- clock said; one that another transaction holds at this moment is there (no other worker can
-- take it meanwhile), and has to be renewed as soon as it is free.
-- Differs from SQLite: row locks, and how a batch is bound.
WITH free AS MATERIALIZED (
    SELECT token
    FROM holdfast_leases
    WHERE token = ANY (:tokens::uuid[])
    FOR UPDATE SKIP LOCKED
), renewed AS (
    UPDATE holdfast_leases
    SET expires_at = :now + :lease_us::bigint * interval '1 microsecond'
    WHERE token = ANY (ARRAY(SELECT token FROM free))
    RETURNING token
)
SELECT token, true AS renewed
FROM renewed
UNION ALL
SELECT token, false
FROM holdfast_leases
WHERE token = ANY (:tokens::uuid[])
    AND token <> ALL (ARRAY(SELECT token FROM free));
