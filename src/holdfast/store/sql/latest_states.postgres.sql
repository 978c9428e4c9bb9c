-- The newest snapshot of each worker that has one. Differs from SQLite in how it looks for each
-- worker by itself, which is one step in the index.
SELECT
    state.worker_id, state.snapshot_at, state.hostname, state.pid, state.processes, state.queues,
    state.tasks_running, state.tasks_claimed, state.memory_usage_mb, state.memory_percent,
    state.cpu_percent, state.max_claim_batch, state.max_claim_per_worker, state.cluster_wide_cap,
    state.queue_priorities, state.queue_max_concurrency, state.recovery_config,
    state.worker_started_at
FROM unnest(:worker_ids::text[]) AS worker (id)
CROSS JOIN LATERAL (
    SELECT * FROM holdfast_worker_states AS each
    WHERE each.worker_id = worker.id
    ORDER BY each.snapshot_at DESC
    LIMIT 1
) AS state;
