-- One page of a walk over the tasks that have a log: when each was last written to.
-- Differs from SQLite in the key of a task.
SELECT task_id AS key, max(written_at) < :before::timestamptz AS past
FROM holdfast_task_logs
WHERE task_id > coalesce(:after::uuid, '00000000-0000-0000-0000-000000000000'::uuid)
GROUP BY task_id
ORDER BY task_id
LIMIT :page::int;
