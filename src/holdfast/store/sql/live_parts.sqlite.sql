-- The workflows that are parts of this one, or parts of those, and have not ended; this one among them.
-- Differs from PostgreSQL in types.
WITH RECURSIVE part (workflow_id) AS (
    SELECT :id
    UNION
    SELECT below.workflow_id
    FROM part
    JOIN holdfast_workflows AS below ON below.parent_id = part.workflow_id
    WHERE below.finished_at IS NULL
)
SELECT workflow_id FROM part;
