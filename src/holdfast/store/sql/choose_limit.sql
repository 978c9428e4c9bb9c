-- The limits of a queue or a task as an operator chooses them; null: as declared, or none.
INSERT INTO holdfast_limits (scope, chosen, chosen_by, updated_at)
VALUES (:scope, :limits, :chosen_by, :now)
ON CONFLICT (scope) DO UPDATE
SET chosen = excluded.chosen, chosen_by = excluded.chosen_by, updated_at = excluded.updated_at;
