-- The counters of all workers since a time, per minute and queue. Differs from PostgreSQL in its
-- types.
SELECT
    minute, queue_name, sum(completed), sum(failed), sum(retried), sum(other), sum(wait_us),
    sum(run_us)
FROM holdfast_stats
WHERE minute >= :since
GROUP BY minute, queue_name
ORDER BY minute, queue_name;
