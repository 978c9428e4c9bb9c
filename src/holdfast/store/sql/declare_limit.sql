-- The limits of a task as its code declares them.
INSERT INTO holdfast_limits (scope, declared, seen, updated_at) VALUES (:scope, :limits, :seen, :now)
ON CONFLICT (scope) DO UPDATE
SET declared = excluded.declared, seen = excluded.seen, updated_at = excluded.updated_at;
