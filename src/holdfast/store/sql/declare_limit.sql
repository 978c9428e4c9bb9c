-- The limits of a task as its code declares them.
INSERT INTO holdfast_limits (scope, declared, updated_at) VALUES (:scope, :limits, :now)
ON CONFLICT (scope) DO UPDATE SET declared = excluded.declared, updated_at = excluded.updated_at;
