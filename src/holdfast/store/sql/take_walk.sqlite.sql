-- Take the turn to walk over all tasks, if the last walk is long over, or its walker is gone (then
-- where it was). A time in the future was noted before the clock stepped back.
-- Differs from PostgreSQL in its types.
INSERT INTO holdfast_meta AS walk (name, value, at) VALUES (:name, :start, :now)
ON CONFLICT (name) DO UPDATE
SET value = ifnull(walk.value, excluded.value), at = excluded.at
WHERE walk.at > excluded.at
    OR walk.at < excluded.at - iif(walk.value IS NULL, :every_us, :stale_us)
RETURNING CAST(value AS BLOB) AS value;
