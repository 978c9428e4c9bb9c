-- The tasks that a claim may choose from, key by key: up to :keys keys behind :after_key, and of each
-- the first tasks in its order. Behind the last key it goes on with the first (:wrapped: it has), up
-- to :until_key, which is null if the walk began before all. One descent of the index for each key,
-- however many tasks it has; of each key at most :each entries are examined. A key of which none can
-- be taken stands here, too.
-- Differs from SQLite in types, in LATERAL (OFFSET 0: looked up once, not for each mention), and in
-- how batches are bound.
WITH RECURSIVE walk (step, concurrency_key, wrapped) AS (
    SELECT 0, :after_key::text COLLATE "C", :wrapped::boolean
    UNION ALL
    SELECT
        walk.step + 1, coalesce(behind.concurrency_key, first.concurrency_key),
        walk.wrapped OR behind.concurrency_key IS NULL
    FROM walk
    CROSS JOIN LATERAL (
        SELECT (
            SELECT coalesce(task.concurrency_key, '')
            FROM holdfast_tasks AS task
            WHERE task.queue_name = :queue_name
                AND task.ready
                AND coalesce(task.concurrency_key, '') > walk.concurrency_key
            ORDER BY coalesce(task.concurrency_key, '')
            LIMIT 1
        ) AS concurrency_key
        OFFSET 0
    ) AS behind
    CROSS JOIN LATERAL (
        SELECT CASE
            WHEN behind.concurrency_key IS NULL AND NOT walk.wrapped THEN (
                SELECT coalesce(task.concurrency_key, '')
                FROM holdfast_tasks AS task
                WHERE task.queue_name = :queue_name
                    AND task.ready
                    AND coalesce(task.concurrency_key, '') > ''
                ORDER BY coalesce(task.concurrency_key, '')
                LIMIT 1
            )
        END AS concurrency_key
        OFFSET 0
    ) AS first
    WHERE walk.step < :keys::int
        AND coalesce(behind.concurrency_key, first.concurrency_key) IS NOT NULL
        AND (behind.concurrency_key IS NOT NULL AND NOT walk.wrapped OR :until_key::text IS NULL
            OR coalesce(behind.concurrency_key, first.concurrency_key)
                <= :until_key::text COLLATE "C")
)
SELECT
    head.id AS key, head.task_name, walk.concurrency_key, head.priority, head.enqueued_at, head.id,
    walk.wrapped
FROM walk
LEFT JOIN LATERAL (
    SELECT entry.id, entry.task_name, entry.priority, entry.enqueued_at
    FROM (
        SELECT
            task.id, task.task_name, task.version, task.good_until, task.attempt, task.priority,
            task.enqueued_at,
            CASE
                WHEN :careful::boolean THEN task.claim_token IS NULL AND task.due_at IS NULL
                    AND task.finished_at IS NULL AND task.error_code IS NULL
                    AND length(task.task_name) BETWEEN 1 AND 255
                    AND length(task.queue_name) BETWEEN 1 AND 100
                    AND isfinite(task.enqueued_at) AND isfinite(task.created_at)
                    AND coalesce(octet_length(task.task_options), 0) <= 10000000
                    AND coalesce(octet_length(task.trace_context), 0) <= 10000000
                ELSE true
            END AS sound
        FROM holdfast_tasks AS task
        WHERE task.queue_name = :queue_name
            AND task.ready
            AND coalesce(task.concurrency_key, '') = walk.concurrency_key
        ORDER BY task.priority, task.enqueued_at, task.id
        LIMIT :each::int
    ) AS entry
    WHERE entry.task_name || '@' || entry.version = ANY (:known::text[])
        AND (entry.good_until IS NULL OR entry.good_until > :now)
        AND entry.attempt <= :most_starts::int
        AND entry.sound
        AND entry.id <> ALL (:aside::uuid[])
    LIMIT :wanted::int
) AS head ON true
WHERE walk.step > 0
ORDER BY walk.step, head.priority, head.enqueued_at, head.id;
