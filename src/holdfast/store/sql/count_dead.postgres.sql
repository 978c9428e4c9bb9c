-- How many dead letters there are of each cause and hour, of no more than :scan that are examined; a row
-- with an id says where to go on.
-- Differs from SQLite in its types, and in how batches are bound and hours are cut.
WITH candidates AS MATERIALIZED (
    (SELECT id FROM holdfast_tasks
     WHERE :queue_name::text IS NULL AND dead AND id < :before::uuid
     ORDER BY id DESC LIMIT :scan::int)
    UNION ALL
    (SELECT id FROM holdfast_tasks
     WHERE dead AND queue_name = :queue_name::text AND id < :before::uuid
     ORDER BY queue_name DESC, id DESC LIMIT :scan::int)
)
SELECT
    NULL::uuid AS examined, task.error_code,
    CASE WHEN task.error_code = 'UNHANDLED_EXCEPTION' THEN rtrim(split_part(task.failed_reason, ' ', 1), ':') END,
    task.task_name, task.version, task.queue_name,
    date_trunc('hour', task.finished_at, 'UTC') AS hour, count(*), min(task.finished_at),
    max(task.finished_at)
FROM holdfast_tasks AS task
WHERE task.id = ANY (ARRAY(SELECT id FROM candidates))
    AND task.dead
    AND (:any_status::bool OR task.status = ANY (:statuses::text[]))
    AND (:task_name::text IS NULL OR task.task_name = :task_name::text)
    AND (:version::int IS NULL OR task.version = :version::int)
    AND (:error_code::text IS NULL OR task.error_code = :error_code::text)
    AND (:exception::text IS NULL OR rtrim(split_part(task.failed_reason, ' ', 1), ':') = :exception::text)
    AND (:text::text IS NULL OR position(:text::text IN lower(concat_ws(
        ' ', task.failed_reason, task.id, task.task_name, task.unique_key, task.concurrency_key
    ) COLLATE "C")) > 0)
    AND (:tag::text IS NULL OR position(:tag::text IN task.tags) > 0)
    AND (:worker_id::text IS NULL OR task.claimed_by_worker_id = :worker_id::text)
    AND (:workflow_id::uuid IS NULL OR task.workflow_id = :workflow_id::uuid)
    AND (:parent_id::uuid IS NULL OR task.parent_id = :parent_id::uuid)
    AND (:created_from::timestamptz IS NULL OR task.created_at >= :created_from::timestamptz)
    AND (:created_until::timestamptz IS NULL OR task.created_at < :created_until::timestamptz)
    AND (:ended_from::timestamptz IS NULL OR task.finished_at >= :ended_from::timestamptz)
    AND (:ended_until::timestamptz IS NULL OR task.finished_at < :ended_until::timestamptz)
GROUP BY 2, 3, 4, 5, 6, 7
UNION ALL
(SELECT id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM candidates
 WHERE (SELECT count(*) FROM candidates) >= :scan::int ORDER BY id LIMIT 1);
