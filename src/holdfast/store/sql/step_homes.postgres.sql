-- The workflows of these steps. Differs from SQLite in how a batch is bound.
SELECT DISTINCT workflow_id FROM holdfast_tasks WHERE id = ANY (:ids::uuid[]) AND workflow_id IS NOT NULL;
