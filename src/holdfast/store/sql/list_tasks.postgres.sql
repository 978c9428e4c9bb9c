-- One page of tasks, the newest first. Each branch of `candidates` is one access path, and :path
-- switches all but one off; none examines more than :scan entries, so that a table of ten million
-- rows cannot hurt the queue. `examined` is where to go on when a page came out short. What is
-- wanted of one queue is read from an index by that queue, without the entries of others.
-- (BETWEEN: an equality would not count in the order, and the index of all queues could be taken.)
-- Differs from SQLite in how batches are bound and in how leases name their tasks.
WITH candidates AS MATERIALIZED (
    (SELECT id FROM holdfast_tasks
     WHERE :path = 'walk' AND id < :before::uuid
     ORDER BY id DESC LIMIT :scan::int)
    UNION ALL
    (SELECT id FROM holdfast_tasks
     WHERE :path = 'pending' AND ready
     ORDER BY queue_name, priority, enqueued_at, id LIMIT :scan::int)
    UNION ALL
    (SELECT id FROM holdfast_tasks
     WHERE :path = 'pending_of' AND ready AND queue_name = :queue_name::text
     LIMIT :scan::int)
    UNION ALL
    (SELECT id FROM holdfast_tasks
     WHERE :path = 'scheduled' AND due_at IS NOT NULL
     ORDER BY due_at LIMIT :scan::int)
    UNION ALL
    (SELECT id FROM holdfast_tasks
     WHERE :path = 'scheduled_of' AND due_at IS NOT NULL
         AND queue_name BETWEEN :queue_name::text AND :queue_name::text
     ORDER BY queue_name, due_at LIMIT :scan::int)
    UNION ALL
    (SELECT task.id FROM holdfast_leases AS lease, unnest(lease.task_ids) AS task (id)
     WHERE :path = 'leased' AND task.id < :before::uuid)
    UNION ALL
    (SELECT id FROM holdfast_tasks
     WHERE :path = 'dead' AND dead AND id < :before::uuid
     ORDER BY id DESC LIMIT :scan::int)
    UNION ALL
    (SELECT id FROM holdfast_tasks
     WHERE :path = 'dead_of' AND dead AND queue_name = :queue_name::text AND id < :before::uuid
     ORDER BY queue_name DESC, id DESC LIMIT :scan::int)
    UNION ALL
    (SELECT id FROM holdfast_tasks
     WHERE :path = 'failed' AND error_code = :error_code::text AND id < :before::uuid
     ORDER BY id DESC LIMIT :scan::int)
    UNION ALL
    (SELECT id FROM holdfast_tasks
     WHERE :path = 'workflow' AND workflow_id = :workflow_id::uuid AND id < :before::uuid
     ORDER BY id DESC LIMIT :scan::int)
    UNION ALL
    (SELECT id FROM holdfast_tasks
     WHERE :path = 'parent' AND parent_id = :parent_id::uuid AND id < :before::uuid
     ORDER BY id DESC LIMIT :scan::int)
), found AS (
    SELECT task.id
    FROM holdfast_tasks AS task
    WHERE task.id = ANY (ARRAY(SELECT id FROM candidates))
        AND task.id < :before::uuid
        AND (:any_status::bool OR task.status = ANY (:statuses::text[]))
        AND task.queue_name = coalesce(:queue_name::text, task.queue_name)
        AND task.task_name = coalesce(:task_name::text, task.task_name)
        AND (:worker_id::text IS NULL OR task.claimed_by_worker_id = :worker_id::text)
        AND (:error_code::text IS NULL OR task.error_code = :error_code::text)
        AND (:exception::text IS NULL OR rtrim(split_part(task.failed_reason, ' ', 1), ':') = :exception::text)
        AND (:workflow_id::uuid IS NULL OR task.workflow_id = :workflow_id::uuid)
        AND (:parent_id::uuid IS NULL OR task.parent_id = :parent_id::uuid)
        AND (:tag::text IS NULL OR position(:tag::text IN task.tags) > 0)
        AND (:dead::bool IS NULL OR coalesce(task.dead, false) = :dead::bool)
        AND (:text::text IS NULL OR position(:text::text IN lower(
            concat_ws(' ', task.id, task.task_name, task.unique_key, task.concurrency_key) COLLATE "C"
        )) > 0)
        AND (:created_from::timestamptz IS NULL OR task.created_at >= :created_from::timestamptz)
        AND (:created_until::timestamptz IS NULL OR task.created_at < :created_until::timestamptz)
    ORDER BY task.id DESC
    LIMIT :limit::int
)
SELECT id, false AS examined, id AS key FROM found
UNION ALL
(SELECT id, true, NULL FROM candidates
 WHERE (SELECT count(*) FROM candidates) >= :scan::int ORDER BY id LIMIT 1);
