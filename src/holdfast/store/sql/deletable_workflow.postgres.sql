-- A workflow to be deleted, or the deepest of its parts, which go before it: nothing of it lives, and it is
-- no part of one that is there. Differs from SQLite: row locks, and types.
WITH RECURSIVE part (workflow_id, depth) AS (
    SELECT workflow_id, 0
    FROM holdfast_workflows AS whole
    WHERE workflow_id = :id::uuid AND finished_at IS NOT NULL
        AND NOT EXISTS (
            SELECT FROM holdfast_workflows AS parent WHERE parent.workflow_id = whole.parent_id
        )
    UNION
    SELECT below.workflow_id, part.depth + 1
    FROM part
    JOIN holdfast_workflows AS below ON below.parent_id = part.workflow_id
    WHERE part.depth < 100
)
SELECT whole.workflow_id
FROM holdfast_workflows AS whole
WHERE whole.workflow_id = (SELECT workflow_id FROM part ORDER BY depth DESC LIMIT 1)
    AND whole.finished_at IS NOT NULL
FOR UPDATE;
