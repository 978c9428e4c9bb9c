-- Counters as they are to be. Their rows are locked, so these values are the latest. (Not a sum with
-- what stands there: constraints are checked with the row as the snapshot has it.)
-- Differs from SQLite in how rows are bound.
INSERT INTO holdfast_counters (scope, place, held, paid_until)
SELECT *
FROM unnest(:scope::text[], :place::int[], :held::int[], :paid_until::timestamptz[])
ON CONFLICT (scope, place) DO UPDATE
SET held = excluded.held, paid_until = excluded.paid_until;
