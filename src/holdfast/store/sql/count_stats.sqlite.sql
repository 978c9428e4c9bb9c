-- Add to a worker's counters of this minute. Differs from PostgreSQL in how rows are bound.
INSERT INTO holdfast_stats AS stats (
    minute, worker_id, queue_name, task_name, completed, failed, retried, other, wait_us, run_us
)
VALUES (
    :now / 60000000 * 60000000, :worker_id, :queue_name, :task_name, :completed, :failed, :retried,
    :other, :wait_us, :run_us
)
ON CONFLICT (minute, worker_id, queue_name, task_name) DO UPDATE
SET completed = stats.completed + excluded.completed,
    failed = stats.failed + excluded.failed,
    retried = stats.retried + excluded.retried,
    other = stats.other + excluded.other,
    wait_us = stats.wait_us + excluded.wait_us,
    run_us = stats.run_us + excluded.run_us;
