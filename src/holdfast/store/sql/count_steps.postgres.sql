-- Add to the count rows of scopes, which are locked in their order first.
-- Differs from SQLite: row locks, and how a batch is bound.
WITH given AS MATERIALIZED (
    SELECT scope_id, part, open_by, bad_by
    FROM unnest(:scopes::uuid[], :parts::int[], :opens::int[], :bads::int[])
        AS given (scope_id, part, open_by, bad_by)
), locked AS MATERIALIZED (
    SELECT counted.scope_id, counted.part
    FROM holdfast_step_counts AS counted
    WHERE (counted.scope_id, counted.part) IN (SELECT scope_id, part FROM given)
    ORDER BY counted.scope_id, counted.part
    FOR UPDATE
)
UPDATE holdfast_step_counts AS counted
SET open = counted.open + given.open_by, bad = counted.bad + given.bad_by
FROM given, (SELECT count(*) AS n FROM locked) AS held
WHERE counted.scope_id = given.scope_id AND counted.part = given.part AND held.n >= 0
RETURNING counted.scope_id, counted.part, counted.is_tail, counted.open;
