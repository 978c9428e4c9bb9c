-- The count rows of a scope, locked in their order. Differs from SQLite: row locks.
SELECT part
FROM holdfast_step_counts
WHERE scope_id = :id::uuid
ORDER BY part
FOR UPDATE;
