-- Counters that count nothing: nobody holds them, nothing came free of them, no rate is paid for in
-- advance. The next task makes them anew.
-- Differs from PostgreSQL: nothing is locked.
DELETE FROM holdfast_counters
WHERE (scope, place) IN (
    SELECT scope, place
    FROM holdfast_counters AS counter
    WHERE counter.held = 0
        AND counter.paid_until < :now - 1000000
        AND NOT EXISTS (SELECT 1 FROM holdfast_freed AS f WHERE f.scope = counter.scope)
        AND counter.scope LIKE '% % %'
    LIMIT :batch
)
RETURNING scope;
