-- Edges that were resolved when their child had left WAITING: they count for nothing.
-- Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_task_dependencies
SET satisfied = NULL
WHERE parent_id IN (SELECT value FROM json_each(:parents))
    AND child_id IN (SELECT value FROM json_each(:children)) AND resolved;
