-- Every queue that has waiting or scheduled tasks or was ever paused. The names are found by skipping
-- through the claim index and that of scheduled tasks, one step per queue, and counting stops at
-- :cap: a million waiting tasks must not make this slow. The oldest task may have any priority; the
-- index knows the first of each.
-- Differs from SQLite, which has no LATERAL.
WITH RECURSIVE waiting (queue_name) AS (
    (SELECT queue_name FROM holdfast_tasks WHERE ready ORDER BY queue_name LIMIT 1)
    UNION ALL
    SELECT (
        SELECT task.queue_name FROM holdfast_tasks AS task
        WHERE task.ready AND task.queue_name > waiting.queue_name
        ORDER BY task.queue_name LIMIT 1
    )
    FROM waiting
    WHERE waiting.queue_name IS NOT NULL
), later (queue_name) AS (
    (SELECT queue_name FROM holdfast_tasks WHERE due_at IS NOT NULL ORDER BY queue_name LIMIT 1)
    UNION ALL
    SELECT (
        SELECT task.queue_name FROM holdfast_tasks AS task
        WHERE task.due_at IS NOT NULL AND task.queue_name > later.queue_name
        ORDER BY task.queue_name LIMIT 1
    )
    FROM later
    WHERE later.queue_name IS NOT NULL
)
SELECT
    name.queue_name, queue.paused_at, queue.paused_by, pending.n, oldest.enqueued_at,
    scheduled.n
FROM (
    SELECT queue_name FROM waiting WHERE queue_name IS NOT NULL
    UNION
    SELECT queue_name FROM later WHERE queue_name IS NOT NULL
    UNION
    SELECT queue_name FROM holdfast_queues
) AS name
LEFT JOIN holdfast_queues AS queue ON queue.queue_name = name.queue_name
CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM (
        SELECT FROM holdfast_tasks AS task
        WHERE task.ready AND task.queue_name = name.queue_name LIMIT :cap::int
    ) AS few
) AS pending
CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM (
        SELECT FROM holdfast_tasks AS task
        WHERE task.due_at IS NOT NULL AND task.queue_name = name.queue_name LIMIT :cap::int
    ) AS few
) AS scheduled
LEFT JOIN LATERAL (
    SELECT min(first.enqueued_at) AS enqueued_at
    FROM generate_series(1, 100) AS level (priority)
    CROSS JOIN LATERAL (
        SELECT task.enqueued_at FROM holdfast_tasks AS task
        WHERE task.ready AND task.queue_name = name.queue_name AND task.priority = level.priority
        ORDER BY task.enqueued_at LIMIT 1
    ) AS first
) AS oldest ON true
ORDER BY name.queue_name;
