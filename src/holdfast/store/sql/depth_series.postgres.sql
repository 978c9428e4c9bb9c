-- How deep queues were in some range: the most of each step of time. Differs from SQLite in its types.
SELECT
    (extract(epoch FROM at) * 1000000)::bigint / :step_us::bigint * :step_us::bigint, queue_name,
    max(pending), max(scheduled), max(claimed), max(running), max(dead), max(oldest_us)
FROM holdfast_depths
WHERE level = :level::text AND at >= :start::timestamptz AND at < :until::timestamptz
    AND (:queue_name::text IS NULL OR queue_name = :queue_name::text)
GROUP BY 1, 2
ORDER BY 1, 2;
