-- One point of a worker's time series. Differs from PostgreSQL in its types.
INSERT INTO holdfast_worker_states (
    worker_id, snapshot_at, hostname, pid, processes, queues, tasks_running, tasks_claimed,
    memory_usage_mb, memory_percent, cpu_percent, max_claim_batch, max_claim_per_worker,
    cluster_wide_cap, queue_priorities, queue_max_concurrency, recovery_config, worker_started_at
)
VALUES (
    :worker_id, :now, :hostname, :pid, :processes, :queues, :tasks_running,
    :tasks_claimed, :memory_usage_mb, :memory_percent, :cpu_percent,
    :max_claim_batch, :max_claim_per_worker, :cluster_wide_cap,
    :queue_priorities, :queue_max_concurrency, :recovery_config,
    :worker_started_at
)
ON CONFLICT DO NOTHING;
