-- The tasks that still carry the tokens of these leases. Differs from PostgreSQL: JSON arrays.
SELECT lease.token, task.seq AS key
FROM holdfast_leases AS lease
CROSS JOIN json_each(iif(json_valid(lease.task_ids), lease.task_ids, '[]')) AS named
CROSS JOIN holdfast_tasks AS task
WHERE lease.token IN (SELECT value FROM json_each(:tokens))
    AND task.seq = named.value
    AND task.claim_token = lease.token
ORDER BY lease.token, task.seq;
