-- How many tasks of each queue are claimed and running. Differs from SQLite: the ids are an array.
SELECT queue_name, status, count(*)
FROM holdfast_tasks
WHERE id = ANY (ARRAY(SELECT unnest(task_ids) FROM holdfast_leases))
    AND status IN ('CLAIMED', 'RUNNING')
GROUP BY queue_name, status;
