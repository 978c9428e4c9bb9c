-- One page of a walk over the tasks that have a log: when each was last written to.
-- Differs from PostgreSQL in the key of a task.
SELECT task_seq AS key, max(written_at) < :before AS past
FROM holdfast_task_logs
WHERE task_seq > ifnull(:after, 0)
GROUP BY task_seq
ORDER BY task_seq
LIMIT :page;
