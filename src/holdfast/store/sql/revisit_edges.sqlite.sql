-- A step is to be resubmitted that needs something: open again what its parents were counted for.
-- `satisfied` keeps what the edge had counted for, which the caller gives back to the child.
-- Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_task_dependencies
SET resolved = 0
WHERE child_id IN (SELECT value FROM json_each(:children))
    AND parent_id IN (SELECT value FROM json_each(:parents))
    AND resolved
RETURNING CAST(parent_id AS BLOB) AS parent_id, CAST(child_id AS BLOB) AS child_id, satisfied;
