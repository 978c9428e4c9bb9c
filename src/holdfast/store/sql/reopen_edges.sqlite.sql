-- A parent was resubmitted: open again its edges to children that have not run because of it.
-- `satisfied` keeps what the edge had counted for, which the caller gives back to the child.
-- Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_task_dependencies AS edge
SET resolved = 0
WHERE edge.parent_id IN (SELECT value FROM json_each(:parents))
    AND edge.resolved
    AND EXISTS (
        SELECT 1 FROM holdfast_tasks AS child
        WHERE child.id = edge.child_id
            AND (child.status = 'WAITING'
                OR (child.status = 'CANCELLED'
                    AND child.error_code IN (
                        'UPSTREAM_FAILED', 'UPSTREAM_CANCELLED', 'UPSTREAM_SUCCEEDED')))
    )
RETURNING CAST(parent_id AS BLOB) AS parent_id, CAST(child_id AS BLOB) AS child_id, satisfied;
