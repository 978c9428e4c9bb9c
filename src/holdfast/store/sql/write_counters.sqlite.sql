-- Counters as they are to be. Run once for each.
-- Differs from PostgreSQL in how rows are bound.
INSERT INTO holdfast_counters (scope, place, held, paid_until)
VALUES (:scope, :place, :held, :paid_until)
ON CONFLICT (scope, place) DO UPDATE
SET held = excluded.held, paid_until = excluded.paid_until;
