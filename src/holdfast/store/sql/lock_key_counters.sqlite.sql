-- The counters of a rule's keys that are held by somebody.
-- Differs from PostgreSQL: one writer at a time, so nothing is locked.
SELECT scope, place, held, paid_until
FROM holdfast_counters
WHERE scope > :from AND scope < :until AND place = 0 AND held > 0
ORDER BY scope;
