-- The newest snapshot of each worker that has one. Differs from PostgreSQL in how it looks for each
-- worker by itself, which is one step in the index.
SELECT
    worker_id, snapshot_at, hostname, pid, processes, queues, tasks_running, tasks_claimed,
    memory_usage_mb, memory_percent, cpu_percent, max_claim_batch, max_claim_per_worker,
    cluster_wide_cap, queue_priorities, queue_max_concurrency, recovery_config, worker_started_at
FROM json_each(:worker_ids) AS worker
JOIN holdfast_worker_states AS state ON state.worker_id = worker.value
    AND state.snapshot_at = (
        SELECT max(snapshot_at) FROM holdfast_worker_states WHERE worker_id = worker.value
    );
