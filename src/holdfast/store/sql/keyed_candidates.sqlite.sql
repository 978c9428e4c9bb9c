-- The tasks that a claim may choose from, key by key: up to :keys keys behind :after_key, and of each
-- the first tasks in its order. Behind the last key it goes on with the first (:wrapped: it has), up
-- to :until_key, which is null if the walk began before all. One descent of the index for each key,
-- however many tasks it has; of each key at most :each entries are examined. A key of which none can
-- be taken stands here, too.
-- Differs from PostgreSQL: the tasks of a key are found by a correlated subquery; a step without a key
-- goes on with the first one; the key; batches.
-- A key that was written by hand and is not UTF-8 is given as its bytes. A function takes the affinity
-- of the CAST away, which would keep the index from being used.
WITH RECURSIVE walk (step, concurrency_key, wrapped) AS (
    SELECT 0, coalesce(CAST(:after_key AS TEXT), ''), :wrapped
    UNION ALL
    SELECT
        walk.step + (walk.concurrency_key IS NOT NULL),
        (
            SELECT min(coalesce(task.concurrency_key, ''))
            FROM holdfast_tasks AS task
            WHERE task.queue_name = :queue_name
                AND task.ready
                AND coalesce(task.concurrency_key, '') > coalesce(walk.concurrency_key, '')
        ),
        walk.wrapped OR walk.concurrency_key IS NULL
    FROM walk
    WHERE walk.step < :keys + (walk.concurrency_key IS NULL)
        AND (walk.concurrency_key IS NOT NULL OR NOT walk.wrapped)
        AND (NOT walk.wrapped OR :until_key IS NULL
            OR walk.concurrency_key < coalesce(CAST(:until_key AS TEXT), ''))
)
SELECT
    head.seq AS key, head.task_name, walk.concurrency_key, head.priority, head.enqueued_at, head.id,
    walk.wrapped
FROM walk
LEFT JOIN holdfast_tasks AS head ON head.seq IN (
    SELECT entry.seq
    FROM (
        SELECT
            seq, task_name, version, good_until, attempt,
            iif(:careful, status = 'PENDING' AND claim_token IS NULL AND due_at IS NULL
                AND finished_at IS NULL AND error_code IS NULL
                AND priority BETWEEN 1 AND 100
                AND length(id) = 36 AND id NOT GLOB '*[^0-9a-f-]*'
                AND length(task_name) BETWEEN 1 AND 255 AND length(queue_name) BETWEEN 1 AND 100
                AND attempt BETWEEN 0 AND 2147483647 AND retry_count BETWEEN 0 AND 2147483647
                AND crash_count BETWEEN 0 AND 2147483647 AND max_retries BETWEEN 0 AND 2147483647
                AND enqueued_at < 253402300800000000 AND created_at < 253402300800000000
                AND ifnull(length(task_options), 0) <= 10000000
                AND ifnull(length(trace_context), 0) <= 10000000, 1) AS sound
        FROM holdfast_tasks
        WHERE queue_name = :queue_name
            AND ready
            AND coalesce(concurrency_key, '') = walk.concurrency_key
        ORDER BY priority, enqueued_at, id
        LIMIT :each
    ) AS entry
    WHERE entry.task_name || '@' || entry.version IN (SELECT value FROM json_each(:known))
        AND (entry.good_until IS NULL OR entry.good_until > :now)
        AND entry.attempt <= :most_starts
        AND entry.sound
        AND entry.seq NOT IN (SELECT value FROM json_each(:aside))
    LIMIT :wanted
)
WHERE walk.step > 0 AND walk.concurrency_key IS NOT NULL
    AND (NOT walk.wrapped OR :until_key IS NULL
        OR walk.concurrency_key <= coalesce(CAST(:until_key AS TEXT), ''))
ORDER BY walk.step, head.priority, head.enqueued_at, head.id;
