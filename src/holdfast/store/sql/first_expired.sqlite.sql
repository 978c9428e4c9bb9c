-- The first task that `expire` would take. Differs from PostgreSQL in the key, and in how a batch is
-- bound.
SELECT seq AS key
FROM holdfast_tasks
WHERE expire_at <= :now AND seq NOT IN (SELECT value FROM json_each(:aside))
ORDER BY expire_at
LIMIT 1;
