-- How many tasks of each queue are claimed and running. Differs from PostgreSQL: the keys are JSON.
SELECT queue_name, status, count(*)
FROM holdfast_tasks
WHERE seq IN (
        SELECT each.value
        FROM holdfast_leases AS lease,
            json_each(iif(json_valid(lease.task_ids), lease.task_ids, '[]')) AS each
    )
    AND status IN ('CLAIMED', 'RUNNING')
GROUP BY queue_name, status;
