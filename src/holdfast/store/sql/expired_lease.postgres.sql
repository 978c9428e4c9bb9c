-- One lease whose time has passed, locked: whoever holds this lock recovers its tasks.
-- Differs from SQLite: locks, skipping what another reaper has.
SELECT token, worker_id, task_ids
FROM holdfast_leases
WHERE expires_at < :now AND token <> ALL (:tried::uuid[])
ORDER BY expires_at
LIMIT 1
FOR UPDATE SKIP LOCKED;
