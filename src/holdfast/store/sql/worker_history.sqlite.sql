-- How a worker was over time: its snapshots, put together by steps. Differs from PostgreSQL in its
-- types.
SELECT
    snapshot_at / :step_us * :step_us,
    max(processes), avg(tasks_running), max(tasks_running), max(tasks_claimed),
    max(memory_usage_mb), avg(cpu_percent), max(cpu_percent)
FROM holdfast_worker_states
WHERE worker_id = :worker_id AND snapshot_at >= :start AND snapshot_at < :until
GROUP BY 1
ORDER BY 1;
