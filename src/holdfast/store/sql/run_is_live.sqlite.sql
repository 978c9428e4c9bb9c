-- Whether a task, or a workflow, has not ended; one that is gone has.
-- Differs from PostgreSQL in its types.
SELECT
    EXISTS (SELECT 1 FROM holdfast_tasks WHERE id = :id AND finished_at IS NULL)
    OR EXISTS (
        SELECT 1 FROM holdfast_workflows WHERE workflow_id = :id AND finished_at IS NULL
    );
