-- How many dead letters each queue has; counting stops at :cap. Differs from SQLite, which has no
-- LATERAL. (BETWEEN: with an equality the index of the dead letters of all queues could be taken.)
WITH RECURSIVE name (queue_name) AS (
    (SELECT queue_name FROM holdfast_tasks WHERE dead ORDER BY queue_name LIMIT 1)
    UNION ALL
    SELECT (
        SELECT task.queue_name FROM holdfast_tasks AS task
        WHERE task.dead AND task.queue_name > name.queue_name
        ORDER BY task.queue_name LIMIT 1
    )
    FROM name
    WHERE name.queue_name IS NOT NULL
)
SELECT name.queue_name, counted.n
FROM name
CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM (
        SELECT FROM holdfast_tasks AS task
        WHERE task.dead AND task.queue_name BETWEEN name.queue_name AND name.queue_name
        ORDER BY task.queue_name, task.id
        LIMIT :cap::int
    ) AS few
) AS counted
WHERE name.queue_name IS NOT NULL;
