-- A parent was resubmitted: open again its edges to children that have not run because of it. (The pause
-- of a part has the id of the step that added it: that is no such edge.)
-- `satisfied` keeps what the edge had counted for, which the caller gives back to the child.
-- Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_task_dependencies AS edge
SET resolved = 0
WHERE edge.parent_id IN (SELECT value FROM json_each(:parents))
    AND edge.resolved
    AND EXISTS (
        SELECT 1 FROM holdfast_tasks AS child
        WHERE child.id = edge.child_id AND child.handed_over IS NOT TRUE
            AND child.workflow_id IS NOT edge.parent_id
            AND (child.status = 'WAITING'
                OR (child.status = 'CANCELLED'
                    AND child.error_code IN (
                        'UPSTREAM_FAILED', 'UPSTREAM_CANCELLED', 'UPSTREAM_SUCCEEDED')))
    )
RETURNING CAST(parent_id AS BLOB) AS parent_id, CAST(child_id AS BLOB) AS child_id, satisfied;
