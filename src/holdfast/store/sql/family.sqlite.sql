-- Who has to do with a resubmit: the tasks themselves, the steps below them that were skipped and
-- may be resubmitted with them, and the parents of all these.
-- Differs from PostgreSQL in how a batch is bound.
WITH RECURSIVE step (id) AS (
    SELECT value FROM json_each(:ids)
    UNION
    SELECT child.id
    FROM step
    JOIN holdfast_task_dependencies AS edge ON edge.parent_id = step.id
    JOIN holdfast_tasks AS child ON child.id = edge.child_id
    WHERE child.status = 'CANCELLED'
        AND child.error_code IN ('UPSTREAM_FAILED', 'UPSTREAM_CANCELLED', 'UPSTREAM_SUCCEEDED')
)
SELECT id FROM step
UNION
SELECT edge.parent_id
FROM step
JOIN holdfast_task_dependencies AS edge ON edge.child_id = step.id;
