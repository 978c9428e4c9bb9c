-- The counters of these scopes.
-- Differs from PostgreSQL: one writer at a time, so nothing is locked; and how a batch is bound.
SELECT scope, place, held, paid_until
FROM holdfast_counters
WHERE scope IN (SELECT value FROM json_each(:scopes));
