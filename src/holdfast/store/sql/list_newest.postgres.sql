-- Two lists of tasks, each with its newest first: those with ids that Holdfast made, by these ids,
-- which begin with their time; and those with ids that their callers made, which say nothing about
-- time, by `created_at`. Of each index no more than :scan entries are examined; `examined` is where
-- to go on when a list came out short. Differs from SQLite in its types, and in how batches are bound.
WITH candidates AS MATERIALIZED (
    (SELECT id, created_at, false AS own FROM holdfast_tasks
     WHERE id < :before_made::uuid AND (get_byte(uuid_send(id), 6) >> 4) = 7
     ORDER BY id DESC LIMIT :scan::int)
    UNION ALL
    (SELECT id, created_at, true FROM holdfast_tasks
     WHERE (get_byte(uuid_send(id), 6) >> 4) <> 7
         AND (created_at, id) < (:before_at::timestamptz, :before_own::uuid)
     ORDER BY created_at DESC, id DESC LIMIT :scan::int)
), fitting AS (
    SELECT task.id, task.created_at, (get_byte(uuid_send(task.id), 6) >> 4) <> 7 AS own
    FROM holdfast_tasks AS task
    WHERE task.id = ANY (ARRAY(SELECT id FROM candidates))
        AND (:any_status::bool OR task.status = ANY (:statuses::text[]))
        AND task.queue_name = coalesce(:queue_name::text, task.queue_name)
        AND task.task_name = coalesce(:task_name::text, task.task_name)
        AND (:worker_id::text IS NULL OR task.claimed_by_worker_id = :worker_id::text)
        AND (:tag::text IS NULL OR position(:tag::text IN task.tags) > 0)
        AND (:dead::bool IS NULL OR coalesce(task.dead, false) = :dead::bool)
        AND (:text::text IS NULL OR position(:text::text IN lower(
            concat_ws(' ', task.id, task.task_name, task.unique_key, task.concurrency_key) COLLATE "C"
        )) > 0)
        AND (:created_from::timestamptz IS NULL OR task.created_at >= :created_from::timestamptz)
        AND (:created_until::timestamptz IS NULL OR task.created_at < :created_until::timestamptz)
), found AS (
    SELECT
        id, created_at, own,
        row_number() OVER (
            PARTITION BY own ORDER BY CASE WHEN own THEN created_at END DESC, id DESC
        ) AS place
    FROM fitting
)
SELECT id, created_at, own, false AS examined FROM found WHERE place <= :limit::int
UNION ALL
(SELECT id, created_at, own, true FROM candidates
 WHERE NOT own AND (SELECT count(*) FROM candidates WHERE NOT own) >= :scan::int
 ORDER BY id LIMIT 1)
UNION ALL
(SELECT id, created_at, own, true FROM candidates
 WHERE own AND (SELECT count(*) FROM candidates WHERE own) >= :scan::int
 ORDER BY created_at, id LIMIT 1);
