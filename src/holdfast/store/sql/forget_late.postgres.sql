-- Edges that were resolved when their child had left WAITING: they count for nothing.
-- Differs from SQLite in how a batch is bound.
UPDATE holdfast_task_dependencies
SET satisfied = NULL
WHERE parent_id = ANY (:parents::uuid[]) AND child_id = ANY (:children::uuid[]) AND resolved;
