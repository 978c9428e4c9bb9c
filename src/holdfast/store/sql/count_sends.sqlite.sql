-- What was sent in some seconds, by minute, queue and task. Ids begin with the time of their sender's
-- clock, so the tasks are a short range of the index of ids, with a margin for clocks that differ.
-- Differs from PostgreSQL in its types.
SELECT created_at / 60000000 * 60000000, queue_name, task_name, count(*)
FROM holdfast_tasks
WHERE id >= :low AND id < :high AND created_at > :after AND created_at <= :until
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3;
