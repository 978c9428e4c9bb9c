-- Count rows of a scope, as they were counted anew. Differs from PostgreSQL in how rows are bound.
INSERT INTO holdfast_step_counts (scope_id, part, is_tail, open, bad)
VALUES (:scope_id, :part, :is_tail, :open, :bad)
ON CONFLICT (scope_id, part) DO UPDATE SET open = excluded.open, bad = excluded.bad;
