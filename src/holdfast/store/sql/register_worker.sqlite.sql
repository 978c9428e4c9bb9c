-- A worker says that it is there, or still there. Differs from PostgreSQL in its types.
INSERT INTO holdfast_workers (
    worker_id, hostname, pid, version, started_at, seen_at, lease_us, queues, known, settings,
    children
)
VALUES (
    :worker_id, :hostname, :pid, :version, :now, :now, :lease_us, :queues, :known, :settings,
    :children
)
ON CONFLICT (worker_id) DO UPDATE
SET seen_at = excluded.seen_at, queues = excluded.queues, known = excluded.known,
    settings = excluded.settings, lease_us = excluded.lease_us, children = excluded.children
RETURNING CAST(command AS BLOB) AS command, started_at;
