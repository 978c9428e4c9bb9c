-- The count rows of a scope. Differs from SQLite in how rows are bound.
INSERT INTO holdfast_step_counts (scope_id, part, is_tail, open)
SELECT scope_id, part, is_tail, open
FROM unnest(:scope_id::uuid[], :part::int[], :is_tail::bool[], :open::int[])
    AS counted (scope_id, part, is_tail, open);
