-- How many dead letters each queue has; counting stops at :cap. Differs from PostgreSQL: a correlated
-- subquery instead of LATERAL.
WITH RECURSIVE name (queue_name) AS (
    SELECT min(queue_name) FROM holdfast_tasks WHERE dead
    UNION ALL
    SELECT (
        SELECT min(task.queue_name) FROM holdfast_tasks AS task
        WHERE task.dead AND task.queue_name > name.queue_name
    )
    FROM name
    WHERE name.queue_name IS NOT NULL
)
SELECT
    name.queue_name,
    (
        SELECT count(*) FROM (
            SELECT 1 FROM holdfast_tasks AS task
            WHERE task.dead AND task.queue_name = name.queue_name LIMIT :cap
        )
    )
FROM name
WHERE name.queue_name IS NOT NULL;
