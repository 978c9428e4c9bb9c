-- The counters of these scopes as they stand, with what the ledger takes off.
-- Differs from PostgreSQL in how a batch is bound.
SELECT
    scope, place,
    held - ifnull((SELECT sum(n) FROM holdfast_freed AS f WHERE f.scope = c.scope), 0),
    paid_until
FROM holdfast_counters AS c
WHERE scope IN (SELECT value FROM json_each(:scopes));
