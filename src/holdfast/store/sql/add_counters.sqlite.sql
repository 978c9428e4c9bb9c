-- Counters that are not there yet. Run once for each.
-- Differs from PostgreSQL in how rows are bound.
INSERT INTO holdfast_counters (scope, place)
VALUES (:scope, :place)
ON CONFLICT DO NOTHING;
