-- One lease whose time has passed, locked: whoever holds this lock recovers its tasks.
-- Differs from SQLite: locks, skipping what another reaper has.
SELECT token, worker_id, task_ids
FROM holdfast_leases
WHERE expires_at < :now AND token <> ALL (:tried::uuid[])
    AND (
        :gap_us::bigint IS NULL
        OR (SELECT at FROM holdfast_meta WHERE name = 'maintained_at')
            >= :now - :gap_us::bigint * interval '1 microsecond'
    )
ORDER BY expires_at
LIMIT 1
FOR UPDATE SKIP LOCKED;
