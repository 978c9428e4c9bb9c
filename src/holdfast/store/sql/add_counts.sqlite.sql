-- The count rows of a scope. Differs from PostgreSQL in how rows are bound.
INSERT INTO holdfast_step_counts (scope_id, part, is_tail, open)
VALUES (:scope_id, :part, :is_tail, :open);
