-- The counters of a rule's keys that are held by somebody, locked.
-- Differs from SQLite: row locks.
SELECT scope, place, held, paid_until
FROM holdfast_counters
WHERE scope > :from AND scope < :until AND place = 0 AND held > 0
ORDER BY scope
FOR UPDATE;
