-- The first task that `promote` would take. Differs from PostgreSQL in the key, and in how a batch is
-- bound.
SELECT seq AS key
FROM holdfast_tasks
WHERE due_at <= :now AND seq NOT IN (SELECT value FROM json_each(:aside))
ORDER BY due_at
LIMIT 1;
