-- Change how many edges these children have open, and how many of them they still need.
-- (A count that nobody counts to would not fit any more: such a row is left as it is.)
-- Differs from SQLite in how a batch is bound.
UPDATE holdfast_tasks
SET deps_open = deps_open + :open::int, deps_needed = deps_needed + :needed::int, updated_at = :now
WHERE id = ANY (:ids::uuid[])
    AND deps_open BETWEEN -1000000000 AND 1000000000
    AND deps_needed BETWEEN -1000000000 AND 1000000000
RETURNING id, status, deps_needed, deps_open;
