-- Which of these tasks are steps of workflows.
-- Differs from PostgreSQL in how a batch is bound.
SELECT id FROM holdfast_tasks
WHERE id IN (SELECT value FROM json_each(:ids)) AND scope_id IS NOT NULL
    AND step_number IS NOT NULL AND workflow_id IS NOT NULL;
