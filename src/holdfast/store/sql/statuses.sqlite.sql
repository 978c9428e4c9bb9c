-- Where these tasks stand. Differs from PostgreSQL in how a batch is bound.
SELECT id, status FROM holdfast_tasks WHERE id IN (SELECT value FROM json_each(:ids));
