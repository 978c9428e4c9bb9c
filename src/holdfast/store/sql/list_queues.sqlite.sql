-- Every queue that has waiting or scheduled tasks or was ever paused. The names are found by skipping
-- through the claim index and that of scheduled tasks, one step per queue, and counting stops at
-- :cap: a million waiting tasks must not make this slow. The oldest of fewer than :few tasks is looked
-- for among all of them. Of more, the oldest of each key and priority stands first in the index: these
-- heads are visited, one descent each, no more than :heads in all queues together (ten of a queue there
-- always are); behind those there may be an older one.
-- A name that is longer than names can be was written by hand, and may have any length: it is not
-- compared more often than to count.
-- Differs from PostgreSQL: correlated subqueries instead of LATERAL; and a comparison of rows would not
-- use an index of expressions, so the next head is that of the next priority of a key, or of the next key.
WITH RECURSIVE waiting (queue_name) AS (
    SELECT min(queue_name) FROM holdfast_tasks WHERE ready
    UNION ALL
    SELECT (
        SELECT min(task.queue_name) FROM holdfast_tasks AS task
        WHERE task.ready AND task.queue_name > waiting.queue_name
    )
    FROM waiting
    WHERE waiting.queue_name IS NOT NULL
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
), counted AS MATERIALIZED (
    SELECT
        name.queue_name,
        (
            SELECT count(*) FROM (
                SELECT 1 FROM holdfast_tasks AS task
                WHERE task.ready AND task.queue_name = name.queue_name LIMIT max(:cap, :few)
            )
        ) AS pending
    FROM name
), share AS MATERIALIZED (
    SELECT max(10, :heads / max(1, count(*))) AS heads FROM counted WHERE pending >= :few
)
SELECT
    counted.queue_name, queue.paused_at, queue.paused_by, min(counted.pending, :cap),
    CASE
        WHEN length(counted.queue_name) > 100 THEN NULL
        WHEN counted.pending < :few THEN (
            SELECT min(task.enqueued_at) FROM holdfast_tasks AS task
            WHERE task.ready AND task.queue_name = counted.queue_name
        )
        ELSE (
            WITH RECURSIVE head (step, seq) AS (
                SELECT 1, (
                    SELECT first.seq FROM holdfast_tasks AS first
                    WHERE first.ready AND first.queue_name = counted.queue_name
                    ORDER BY coalesce(first.concurrency_key, ''), first.priority, first.enqueued_at
                    LIMIT 1
                )
                UNION ALL
                SELECT head.step + 1, coalesce(
                    (
                        SELECT next.seq FROM holdfast_tasks AS next
                        WHERE next.ready AND next.queue_name = counted.queue_name
                            AND coalesce(next.concurrency_key, '')
                                = coalesce(task.concurrency_key, '')
                            AND next.priority > task.priority
                        ORDER BY next.priority, next.enqueued_at
                        LIMIT 1
                    ),
                    (
                        SELECT next.seq FROM holdfast_tasks AS next
                        WHERE next.ready AND next.queue_name = counted.queue_name
                            AND coalesce(next.concurrency_key, '')
                                > coalesce(task.concurrency_key, '')
                        ORDER BY
                            coalesce(next.concurrency_key, ''), next.priority, next.enqueued_at
                        LIMIT 1
                    )
                )
                FROM head
                JOIN holdfast_tasks AS task ON task.seq = head.seq
                WHERE head.step < (SELECT heads FROM share)
            )
            SELECT min(task.enqueued_at)
            FROM head
            JOIN holdfast_tasks AS task ON task.seq = head.seq
        )
    END,
    (
        SELECT count(*) FROM (
            SELECT 1 FROM holdfast_tasks AS task
            WHERE task.due_at IS NOT NULL AND task.queue_name = counted.queue_name LIMIT :cap
        )
    )
FROM counted
LEFT JOIN holdfast_queues AS queue ON queue.queue_name = counted.queue_name
ORDER BY counted.queue_name;
