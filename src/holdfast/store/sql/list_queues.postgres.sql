-- Every queue that has waiting or scheduled tasks or was ever paused. The names are found by skipping
-- through the claim index and that of scheduled tasks, one step per queue, and counting stops at
-- :cap: a million waiting tasks must not make this slow. The oldest of fewer than :few tasks is looked
-- for among all of them. Of more, the oldest of each key and priority stands first in the index: these
-- heads are visited, one descent each, no more than :heads in all queues together (ten of a queue there
-- always are); behind those there may be an older one.
-- Differs from SQLite, which has no LATERAL. (BETWEEN, for one queue: an equality would not count in the
-- order, and the index of the scheduled tasks of all queues could be taken.)
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
), counted AS MATERIALIZED (
    SELECT name.queue_name, few.pending, few.oldest
    FROM (
        SELECT queue_name FROM waiting WHERE queue_name IS NOT NULL
        UNION
        SELECT queue_name FROM later WHERE queue_name IS NOT NULL
        UNION
        SELECT queue_name FROM holdfast_queues
    ) AS name
    CROSS JOIN LATERAL (
        SELECT count(*) AS pending, min(first.enqueued_at) AS oldest FROM (
            SELECT task.enqueued_at FROM holdfast_tasks AS task
            WHERE task.ready AND task.queue_name = name.queue_name
            LIMIT greatest(:cap::int, :few::int)
        ) AS first
    ) AS few
), share AS MATERIALIZED (
    SELECT greatest(10, :heads::int / greatest(1, count(*))) AS heads
    FROM counted
    WHERE pending >= :few::int
)
SELECT
    counted.queue_name, queue.paused_at, queue.paused_by, least(counted.pending, :cap::int),
    CASE WHEN counted.pending < :few::int THEN counted.oldest ELSE head.oldest END
        AS oldest_enqueued_at,
    scheduled.n
FROM counted
LEFT JOIN holdfast_queues AS queue ON queue.queue_name = counted.queue_name
CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM (
        SELECT FROM holdfast_tasks AS task
        WHERE task.due_at IS NOT NULL
            AND task.queue_name BETWEEN counted.queue_name AND counted.queue_name
        ORDER BY task.queue_name, task.due_at
        LIMIT :cap::int
    ) AS few
) AS scheduled
LEFT JOIN LATERAL (
    WITH RECURSIVE head (step, key, priority, enqueued_at) AS (
        (
            SELECT 1, coalesce(task.concurrency_key, ''), task.priority, task.enqueued_at
            FROM holdfast_tasks AS task
            WHERE counted.pending >= :few::int
                AND task.ready AND task.queue_name = counted.queue_name
            ORDER BY coalesce(task.concurrency_key, ''), task.priority, task.enqueued_at
            LIMIT 1
        )
        UNION ALL
        SELECT head.step + 1, next.key, next.priority, next.enqueued_at
        FROM head
        CROSS JOIN LATERAL (
            SELECT coalesce(task.concurrency_key, '') AS key, task.priority, task.enqueued_at
            FROM holdfast_tasks AS task
            WHERE task.ready AND task.queue_name = counted.queue_name
                AND (coalesce(task.concurrency_key, ''), task.priority) > (head.key, head.priority)
            ORDER BY coalesce(task.concurrency_key, ''), task.priority, task.enqueued_at
            LIMIT 1
        ) AS next
        WHERE head.step < (SELECT heads FROM share)
    )
    SELECT min(enqueued_at) AS oldest FROM head
) AS head ON true
ORDER BY counted.queue_name;
