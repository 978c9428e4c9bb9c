-- Add to a worker's counters of this minute. Differs from SQLite in how rows are bound.
INSERT INTO holdfast_stats AS stats (
    minute, worker_id, queue_name, task_name, completed, failed, retried, other, wait_us, run_us
)
SELECT
    date_trunc('minute', :now), worker_id, queue_name, task_name, completed, failed, retried,
    other, wait_us, run_us
FROM
    unnest(
        :worker_id::text[], :queue_name::text[], :task_name::text[], :completed::bigint[],
        :failed::bigint[], :retried::bigint[], :other::bigint[], :wait_us::bigint[],
        :run_us::bigint[]
    ) AS row (
        worker_id, queue_name, task_name, completed, failed, retried, other, wait_us, run_us
    )
ON CONFLICT (minute, worker_id, queue_name, task_name) DO UPDATE
SET completed = stats.completed + excluded.completed,
    failed = stats.failed + excluded.failed,
    retried = stats.retried + excluded.retried,
    other = stats.other + excluded.other,
    wait_us = stats.wait_us + excluded.wait_us,
    run_us = stats.run_us + excluded.run_us;
