-- The counters of all workers since a time, per minute and queue. Differs from SQLite in its types.
SELECT
    minute, queue_name, sum(completed)::bigint, sum(failed)::bigint, sum(retried)::bigint,
    sum(other)::bigint, sum(wait_us)::bigint, sum(run_us)::bigint
FROM holdfast_stats
WHERE minute >= :since::timestamptz
GROUP BY minute, queue_name
ORDER BY minute, queue_name;
