-- Which of these tasks are steps of workflows.
-- Differs from SQLite in how a batch is bound.
SELECT id FROM holdfast_tasks
WHERE id = ANY (:ids::uuid[]) AND scope_id IS NOT NULL AND step_number IS NOT NULL
    AND workflow_id IS NOT NULL;
