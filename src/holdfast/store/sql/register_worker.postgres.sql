-- A worker says that it is there, or still there. Differs from SQLite in its types.
INSERT INTO holdfast_workers (
    worker_id, hostname, pid, version, started_at, seen_at, lease_us, queues, known, settings,
    children
)
VALUES (
    :worker_id, :hostname, :pid::int, :version, :now, :now, :lease_us::bigint, :queues, :known,
    :settings, :children::text
)
ON CONFLICT (worker_id) DO UPDATE
SET seen_at = excluded.seen_at, queues = excluded.queues, known = excluded.known,
    settings = excluded.settings, lease_us = excluded.lease_us, children = excluded.children
RETURNING command, started_at;
