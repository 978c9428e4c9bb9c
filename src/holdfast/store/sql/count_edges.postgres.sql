-- Change how many edges these children have open, and how many of them they still need.
-- Differs from SQLite in how a batch is bound.
UPDATE holdfast_tasks
SET deps_open = deps_open + :open::int, deps_needed = deps_needed + :needed::int, updated_at = :now
WHERE id = ANY (:ids::uuid[])
RETURNING id, status, deps_needed, deps_open;
