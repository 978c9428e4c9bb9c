-- One lease whose time has passed. Differs from PostgreSQL: the writer is alone, nothing is locked.
SELECT token, worker_id, task_ids
FROM holdfast_leases
WHERE expires_at < :now AND token NOT IN (SELECT value FROM json_each(:tried))
    AND (
        :gap_us IS NULL
        OR (SELECT at FROM holdfast_meta WHERE name = 'maintained_at') >= :now - :gap_us
    )
ORDER BY expires_at
LIMIT 1;
