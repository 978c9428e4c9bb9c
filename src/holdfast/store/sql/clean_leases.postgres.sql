-- The leases of batches whose tasks have all ended durably. Differs from SQLite in its batch.
DELETE FROM holdfast_leases WHERE token = ANY (:tokens::uuid[]) RETURNING token;
