-- A step is to be resubmitted that needs something: open again what its parents were counted for.
-- `satisfied` keeps what the edge had counted for, which the caller gives back to the child.
-- Differs from SQLite in how a batch is bound.
UPDATE holdfast_task_dependencies
SET resolved = false
WHERE child_id = ANY (:children::uuid[]) AND parent_id = ANY (:parents::uuid[]) AND resolved
RETURNING parent_id, child_id, satisfied;
