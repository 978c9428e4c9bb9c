-- The snapshots of a worker, the newest first. Differs from SQLite in its types.
SELECT
    worker_id, snapshot_at, hostname, pid, processes, queues, tasks_running, tasks_claimed,
    memory_usage_mb, memory_percent, cpu_percent, max_claim_batch, max_claim_per_worker,
    cluster_wide_cap, queue_priorities, queue_max_concurrency, recovery_config, worker_started_at
FROM holdfast_worker_states
WHERE worker_id = :worker_id AND snapshot_at >= :since::timestamptz
ORDER BY snapshot_at DESC
LIMIT :limit::int;
