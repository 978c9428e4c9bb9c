-- Lock a workflow with its parts and those that it is a part of, in the order of their ids.
-- Differs from SQLite, where the writer is alone.
WITH RECURSIVE above (workflow_id, parent_id) AS (
    SELECT workflow_id, parent_id FROM holdfast_workflows WHERE workflow_id = :id::uuid
    UNION
    SELECT whole.workflow_id, whole.parent_id
    FROM above
    JOIN holdfast_workflows AS whole ON whole.workflow_id = above.parent_id
), part (workflow_id) AS (
    SELECT :id::uuid
    UNION
    SELECT below.workflow_id
    FROM part
    JOIN holdfast_workflows AS below ON below.parent_id = part.workflow_id
)
SELECT workflow_id
FROM holdfast_workflows
WHERE workflow_id = ANY (ARRAY(
        SELECT workflow_id FROM above UNION ALL SELECT workflow_id FROM part
    ))
ORDER BY workflow_id
FOR UPDATE;
