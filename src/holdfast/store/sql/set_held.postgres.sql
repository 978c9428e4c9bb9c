-- How many hold these counters, whatever stood there; their rates are left as they are.
-- Differs from SQLite in how rows are bound.
INSERT INTO holdfast_counters (scope, place, held)
SELECT scope, 0, held FROM unnest(:scope::text[], :held::int[]) AS counted (scope, held)
ON CONFLICT (scope, place) DO UPDATE SET held = excluded.held;
