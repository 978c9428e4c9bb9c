-- What was sent in some seconds, by minute, queue and task. Ids begin with the time of their sender's
-- clock, so the tasks are a short range of the primary key, with a margin for clocks that differ.
-- Differs from SQLite in its types.
SELECT date_trunc('minute', created_at), queue_name, task_name, count(*)
FROM holdfast_tasks
WHERE id >= :low::uuid AND id < :high::uuid
    AND created_at > :after::timestamptz AND created_at <= :until::timestamptz
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3;
