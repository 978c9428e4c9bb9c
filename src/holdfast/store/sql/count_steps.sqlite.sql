-- Add to the count rows of scopes. (The lists are joined as tables, with an index that is made for it:
-- joined as they are, each would be read anew for every row.)
-- Differs from PostgreSQL: no locks, and how a batch is bound.
WITH scopes AS MATERIALIZED (
    SELECT key, value FROM json_each(:scopes)
), parts AS MATERIALIZED (
    SELECT key, value FROM json_each(:parts)
), opens AS MATERIALIZED (
    SELECT key, value FROM json_each(:opens)
), bads AS MATERIALIZED (
    SELECT key, value FROM json_each(:bads)
), given AS MATERIALIZED (
    SELECT
        scopes.value AS scope_id, parts.value AS part, opens.value AS open_by, bads.value AS bad_by
    FROM scopes
    JOIN parts ON parts.key = scopes.key
    JOIN opens ON opens.key = scopes.key
    JOIN bads ON bads.key = scopes.key
)
UPDATE holdfast_step_counts AS counted
SET open = counted.open + given.open_by, bad = counted.bad + given.bad_by
FROM given
WHERE counted.scope_id = given.scope_id AND counted.part = given.part
RETURNING CAST(scope_id AS BLOB) AS scope_id, part, is_tail, open;
