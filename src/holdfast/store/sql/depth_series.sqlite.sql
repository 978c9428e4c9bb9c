-- How deep queues were in some range: the most of each step of time. Differs from PostgreSQL in its
-- types.
SELECT
    at / :step_us * :step_us, queue_name, max(pending), max(scheduled), max(claimed), max(running),
    max(dead), max(oldest_us)
FROM holdfast_depths
WHERE level = :level AND at >= :start AND at < :until
    AND (:queue_name IS NULL OR queue_name = :queue_name)
GROUP BY 1, 2
ORDER BY 1, 2;
