-- One lease whose time has passed. Differs from PostgreSQL: the writer is alone, nothing is locked.
SELECT token, worker_id, task_ids
FROM holdfast_leases
WHERE expires_at < :now AND token NOT IN (SELECT value FROM json_each(:tried))
ORDER BY expires_at
LIMIT 1;
