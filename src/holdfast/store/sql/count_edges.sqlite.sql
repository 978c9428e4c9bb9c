-- Change how many edges these children have open, and how many of them they still need.
-- Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_tasks
SET deps_open = deps_open + :open, deps_needed = deps_needed + :needed, updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids))
RETURNING id, status, deps_needed, deps_open;
