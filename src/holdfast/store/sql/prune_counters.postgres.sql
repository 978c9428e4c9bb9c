-- Counters that count nothing: nobody holds them, nothing came free of them, no rate is paid for in
-- advance. The next task makes them anew. Those somebody has locked stay.
-- Differs from SQLite: row locks.
DELETE FROM holdfast_counters
WHERE (scope, place) IN (
    SELECT scope, place
    FROM holdfast_counters AS counter
    WHERE counter.held = 0
        AND counter.paid_until < :now - interval '1 second'
        AND NOT EXISTS (SELECT FROM holdfast_freed AS f WHERE f.scope = counter.scope)
        AND counter.scope LIKE '% % %'
    ORDER BY scope, place
    LIMIT :batch::int
    FOR UPDATE SKIP LOCKED
)
RETURNING scope;
