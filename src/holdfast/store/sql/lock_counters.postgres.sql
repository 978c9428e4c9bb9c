-- The counters of these scopes, each locked until the end of the transaction, in one order for all.
-- It waits: a statement goes on with the snapshot that it had before it waited, so what depends on
-- these is looked up by later ones.
-- Differs from SQLite: row locks, and how a batch is bound.
SELECT scope, place, held, paid_until
FROM holdfast_counters
WHERE scope = ANY (:scopes::text[])
ORDER BY scope, place
FOR UPDATE;
