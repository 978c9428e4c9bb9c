-- Which of these workflows let none of their steps run again: completed, or still winding down.
-- Differs from SQLite in how a batch is bound.
SELECT workflow_id
FROM holdfast_workflows
WHERE workflow_id = ANY (:ids::uuid[])
    AND (status = 'COMPLETED' OR (stopping IS NOT NULL AND finished_at IS NULL));
