-- The counters of these scopes as they stand, with what the ledger takes off.
-- Differs from SQLite in how a batch is bound.
SELECT
    scope, place,
    held - coalesce((SELECT sum(n) FROM holdfast_freed AS f WHERE f.scope = c.scope), 0)::int,
    paid_until
FROM holdfast_counters AS c
WHERE scope = ANY (:scopes::text[]);
