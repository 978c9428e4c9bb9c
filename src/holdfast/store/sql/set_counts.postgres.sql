-- Count rows of a scope, as they were counted anew. Differs from SQLite in how rows are bound.
INSERT INTO holdfast_step_counts (scope_id, part, is_tail, open, bad)
SELECT scope_id, part, is_tail, open, bad
FROM unnest(:scope_id::uuid[], :part::int[], :is_tail::bool[], :open::int[], :bad::int[])
    AS counted (scope_id, part, is_tail, open, bad)
ON CONFLICT (scope_id, part) DO UPDATE SET open = excluded.open, bad = excluded.bad;
