-- Two lists of tasks, each with its newest first: those with ids that Holdfast made, by these ids,
-- which begin with their time; and those with ids that their callers made, which say nothing about
-- time, by `created_at`. Of each index no more than :scan entries are examined; `examined` is where
-- to go on when a list came out short. Differs from PostgreSQL in its types, and in how batches are
-- bound.
WITH candidates AS MATERIALIZED (
    SELECT * FROM (
        SELECT id, created_at, 0 AS own FROM holdfast_tasks
        WHERE id < :before_made AND substr(id, 15, 1) = '7'
        ORDER BY id DESC LIMIT :scan)
    UNION ALL
    SELECT * FROM (
        SELECT id, created_at, 1 FROM holdfast_tasks
        WHERE substr(id, 15, 1) <> '7' AND (created_at, id) < (:before_at, :before_own)
        ORDER BY created_at DESC, id DESC LIMIT :scan)
), fitting AS (
    SELECT task.id, task.seq, task.created_at, substr(task.id, 15, 1) <> '7' AS own
    FROM holdfast_tasks AS task
    WHERE task.id IN (SELECT id FROM candidates)
        AND (:any_status OR task.status IN (SELECT value FROM json_each(:statuses)))
        AND task.queue_name = ifnull(:queue_name, task.queue_name)
        AND task.task_name = ifnull(:task_name, task.task_name)
        AND (:worker_id IS NULL OR task.claimed_by_worker_id = :worker_id)
        AND (:tag IS NULL OR instr(task.tags, :tag) > 0)
        AND (:dead IS NULL OR ifnull(task.dead, 0) = :dead)
        AND (:text IS NULL OR instr(lower(
            task.id || ' ' || task.task_name || ' ' || ifnull(task.unique_key, '') || ' '
                || ifnull(task.concurrency_key, '')), :text) > 0)
        AND (:created_from IS NULL OR task.created_at >= :created_from)
        AND (:created_until IS NULL OR task.created_at < :created_until)
), found AS (
    SELECT
        id, seq, created_at, own,
        row_number() OVER (
            PARTITION BY own ORDER BY CASE WHEN own THEN created_at END DESC, id DESC
        ) AS place
    FROM fitting
)
SELECT id, created_at, own, 0 AS examined, seq AS key FROM found WHERE place <= :limit
UNION ALL
SELECT * FROM (
    SELECT id, created_at, own, 1, NULL FROM candidates
    WHERE NOT own AND (SELECT count(*) FROM candidates WHERE NOT own) >= :scan
    ORDER BY id LIMIT 1)
UNION ALL
SELECT * FROM (
    SELECT id, created_at, own, 1, NULL FROM candidates
    WHERE id GLOB '????????-????-????-????-????????????'
        AND own AND (SELECT count(*) FROM candidates WHERE own) >= :scan
    ORDER BY created_at, id LIMIT 1);
