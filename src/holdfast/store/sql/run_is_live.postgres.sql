-- Whether a task, or a workflow, has not ended; one that is gone has.
-- Differs from SQLite in its types.
SELECT
    EXISTS (SELECT FROM holdfast_tasks WHERE id = :id::uuid AND finished_at IS NULL)
    OR EXISTS (
        SELECT FROM holdfast_workflows WHERE workflow_id = :id::uuid AND finished_at IS NULL
    );
