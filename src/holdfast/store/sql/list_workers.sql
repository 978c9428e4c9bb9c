-- Every worker that is remembered, the newest first.
SELECT
    worker_id, hostname, pid, version, started_at, seen_at, stopped_at, lease_us, queues, known,
    settings, command, children
FROM holdfast_workers
ORDER BY started_at DESC, worker_id;
