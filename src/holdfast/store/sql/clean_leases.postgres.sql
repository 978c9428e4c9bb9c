-- The leases of batches whose tasks have all ended durably. One that another transaction
-- holds stays, and is deleted when it has expired. Differs from SQLite: row locks, and its batch.
DELETE FROM holdfast_leases
WHERE token = ANY (ARRAY(
        SELECT token FROM holdfast_leases WHERE token = ANY (:tokens::uuid[]) FOR UPDATE SKIP LOCKED
    ))
RETURNING token;
