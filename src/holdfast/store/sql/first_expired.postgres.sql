-- The first task that `expire` would take. Differs from SQLite in how a batch is bound.
SELECT id AS key
FROM holdfast_tasks
WHERE expire_at <= :now AND id <> ALL (:aside::uuid[])
ORDER BY expire_at
LIMIT 1;
