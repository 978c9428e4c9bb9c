-- Which of these tasks have a cancel requested. Differs from PostgreSQL in how a batch is bound.
SELECT id FROM holdfast_tasks
WHERE id IN (SELECT value FROM json_each(:ids)) AND cancel_requested_at IS NOT NULL;
