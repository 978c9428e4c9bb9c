-- The count rows of a scope. Differs from PostgreSQL: one writer at a time, so nothing is locked.
SELECT part
FROM holdfast_step_counts
WHERE scope_id = :id
ORDER BY part;
