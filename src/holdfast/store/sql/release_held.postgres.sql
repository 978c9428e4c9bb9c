-- A pause is over: resolve its edges to these steps, which the caller has locked.
-- Differs from SQLite in types.
UPDATE holdfast_task_dependencies AS pause
SET resolved = true, satisfied = true
WHERE pause.parent_id = :id::uuid AND pause.child_id = ANY (:ids::uuid[]) AND NOT pause.resolved
RETURNING child_id;
