-- The leases of batches whose tasks have all ended durably. Differs from PostgreSQL in its batch.
DELETE FROM holdfast_leases WHERE token IN (SELECT value FROM json_each(:tokens)) RETURNING 1;
