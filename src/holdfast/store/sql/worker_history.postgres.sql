-- How a worker was over time: its snapshots, put together by steps. Differs from SQLite in its types.
SELECT
    (extract(epoch FROM snapshot_at) * 1000000)::bigint / :step_us::bigint * :step_us::bigint,
    max(processes), avg(tasks_running)::double precision, max(tasks_running), max(tasks_claimed),
    max(memory_usage_mb), avg(cpu_percent), max(cpu_percent)
FROM holdfast_worker_states
WHERE worker_id = :worker_id::text
    AND snapshot_at >= :start::timestamptz AND snapshot_at < :until::timestamptz
GROUP BY 1
ORDER BY 1;
