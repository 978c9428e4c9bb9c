-- How many hold a counter, whatever stood there; its rates are left as they are. Run once for each.
-- Differs from PostgreSQL in how rows are bound.
INSERT INTO holdfast_counters (scope, place, held) VALUES (:scope, 0, :held)
ON CONFLICT (scope, place) DO UPDATE SET held = excluded.held;
