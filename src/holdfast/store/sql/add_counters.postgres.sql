-- Counters that are not there yet.
-- Differs from SQLite in how rows are bound.
INSERT INTO holdfast_counters (scope, place)
SELECT * FROM unnest(:scope::text[], :place::int[])
ON CONFLICT DO NOTHING;
