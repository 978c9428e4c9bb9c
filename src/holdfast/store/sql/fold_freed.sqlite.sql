-- What came free of these scopes: taken out of the ledger, to be subtracted from the counters.
-- Differs from PostgreSQL in how a batch is bound.
DELETE FROM holdfast_freed
WHERE scope IN (SELECT value FROM json_each(:scopes))
RETURNING scope, n;
