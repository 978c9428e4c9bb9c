-- Add to the count rows of scopes. Differs from PostgreSQL: no locks, and how a batch is bound.
UPDATE holdfast_step_counts AS counted
SET open = counted.open + given.open_by, bad = counted.bad + given.bad_by
FROM (
    SELECT
        scopes.value AS scope_id, parts.value AS part, opens.value AS open_by, bads.value AS bad_by
    FROM json_each(:scopes) AS scopes
    JOIN json_each(:parts) AS parts ON parts.key = scopes.key
    JOIN json_each(:opens) AS opens ON opens.key = scopes.key
    JOIN json_each(:bads) AS bads ON bads.key = scopes.key
) AS given
WHERE counted.scope_id = given.scope_id AND counted.part = given.part
RETURNING CAST(scope_id AS BLOB) AS scope_id, part, is_tail, open;
