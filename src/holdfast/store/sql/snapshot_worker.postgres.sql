-- One point of a worker's time series. Differs from SQLite in its types.
INSERT INTO holdfast_worker_states (
    worker_id, snapshot_at, hostname, pid, processes, queues, tasks_running, tasks_claimed,
    memory_usage_mb, memory_percent, cpu_percent, max_claim_batch, max_claim_per_worker,
    cluster_wide_cap, queue_priorities, queue_max_concurrency, recovery_config, worker_started_at
)
VALUES (
    :worker_id, :now, :hostname, :pid::int, :processes::int, :queues, :tasks_running::int,
    :tasks_claimed::int, :memory_usage_mb::float8, :memory_percent::float8, :cpu_percent::float8,
    :max_claim_batch::int, :max_claim_per_worker::int, :cluster_wide_cap::int,
    :queue_priorities::text, :queue_max_concurrency::text, :recovery_config::text,
    :worker_started_at::timestamptz
)
ON CONFLICT DO NOTHING;
