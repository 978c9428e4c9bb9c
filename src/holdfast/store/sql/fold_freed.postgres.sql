-- What came free of these scopes, whose counters are locked: taken out of the ledger, to be
-- subtracted by whoever has locked them.
-- Differs from SQLite in how a batch is bound.
DELETE FROM holdfast_freed
WHERE scope = ANY (:scopes::text[])
RETURNING scope, n;
