-- Those counters of these scopes that nobody else has locked, locked. For keys: there are others.
-- Differs from SQLite: row locks, and how a batch is bound.
SELECT scope, place, held, paid_until
FROM holdfast_counters
WHERE scope = ANY (:scopes::text[])
ORDER BY scope, place
FOR UPDATE SKIP LOCKED;
