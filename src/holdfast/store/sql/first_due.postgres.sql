-- The first task that `promote` would take. Differs from SQLite in how a batch is bound.
SELECT id AS key
FROM holdfast_tasks
WHERE due_at <= :now AND id <> ALL (:aside::uuid[])
ORDER BY due_at
LIMIT 1;
