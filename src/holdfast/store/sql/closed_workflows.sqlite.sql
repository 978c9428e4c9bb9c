-- Which of these workflows let none of their steps run again: completed, or still winding down.
-- Differs from PostgreSQL in how a batch is bound.
SELECT workflow_id
FROM holdfast_workflows
WHERE workflow_id IN (SELECT value FROM json_each(:ids))
    AND (status = 'COMPLETED' OR (stopping IS NOT NULL AND finished_at IS NULL));
