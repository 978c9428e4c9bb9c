-- The workflows of these steps. Differs from PostgreSQL in how a batch is bound.
SELECT DISTINCT workflow_id FROM holdfast_tasks WHERE id IN (SELECT value FROM json_each(:ids)) AND workflow_id IS NOT NULL;
