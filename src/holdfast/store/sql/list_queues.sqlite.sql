-- Every queue that has waiting or scheduled tasks or was ever paused. The names are found by skipping
-- through the claim index and that of scheduled tasks, one step per queue, and counting stops at
-- :cap: a million waiting tasks must not make this slow. The oldest task may have any priority; the
-- index knows the first of each. A name that is longer than names can be was written by hand, and may
-- have any length: it is not looked for a hundred times.
-- Differs from PostgreSQL: correlated subqueries instead of LATERAL.
WITH RECURSIVE waiting (queue_name) AS (
    SELECT min(queue_name) FROM holdfast_tasks WHERE ready
    UNION ALL
    SELECT (
        SELECT min(task.queue_name) FROM holdfast_tasks AS task
        WHERE task.ready AND task.queue_name > waiting.queue_name
    )
    FROM waiting
    WHERE waiting.queue_name IS NOT NULL
), level (priority) AS (
    SELECT 1 UNION ALL SELECT priority + 1 FROM level WHERE priority < 100
), later (queue_name) AS (
    SELECT min(queue_name) FROM holdfast_tasks WHERE due_at IS NOT NULL
    UNION ALL
    SELECT (
        SELECT min(task.queue_name) FROM holdfast_tasks AS task
        WHERE task.due_at IS NOT NULL AND task.queue_name > later.queue_name
    )
    FROM later
    WHERE later.queue_name IS NOT NULL
), name (queue_name) AS (
    SELECT queue_name FROM waiting WHERE queue_name IS NOT NULL
    UNION
    SELECT queue_name FROM later WHERE queue_name IS NOT NULL
    UNION
    SELECT queue_name FROM holdfast_queues
)
SELECT
    name.queue_name, queue.paused_at, queue.paused_by,
    (
        SELECT count(*) FROM (
            SELECT 1 FROM holdfast_tasks AS task
            WHERE task.ready AND task.queue_name = name.queue_name LIMIT :cap
        )
    ),
    (
        SELECT min((
            SELECT min(task.enqueued_at) FROM holdfast_tasks AS task
            WHERE task.ready AND task.queue_name = name.queue_name
                AND task.priority = level.priority
        ))
        FROM level
        WHERE length(name.queue_name) <= 100
    ),
    (
        SELECT count(*) FROM (
            SELECT 1 FROM holdfast_tasks AS task
            WHERE task.due_at IS NOT NULL AND task.queue_name = name.queue_name LIMIT :cap
        )
    )
FROM name
LEFT JOIN holdfast_queues AS queue ON queue.queue_name = name.queue_name
ORDER BY name.queue_name;
