-- Tasks that may end soon: those that workers hold, the first of each of these queues, and the newest
-- of all. Differs from SQLite: the ids of a lease are an array, and LATERAL.
SELECT unnest(lease.task_ids) AS id
FROM holdfast_leases AS lease
UNION
SELECT first.id
FROM unnest(:queues::text[]) AS wanted (queue_name)
CROSS JOIN LATERAL (
    SELECT task.id
    FROM holdfast_tasks AS task
    WHERE task.queue_name = wanted.queue_name
        AND task.ready
    ORDER BY coalesce(task.concurrency_key, ''), task.priority, task.enqueued_at, task.id
    LIMIT :each::int
) AS first
UNION
SELECT newest.id
FROM (
    SELECT task.id
    FROM holdfast_tasks AS task
    WHERE task.id < :latest::uuid
    ORDER BY task.id DESC
    LIMIT :most::int
) AS newest;
