-- Tasks that may end soon: those that workers hold, the first of each of these queues, and the newest
-- of all. Differs from PostgreSQL: the keys of a lease are JSON, and there is no LATERAL.
SELECT id
FROM holdfast_tasks
WHERE seq IN (
    SELECT each.value
    FROM holdfast_leases AS lease,
        json_each(iif(json_valid(lease.task_ids), lease.task_ids, '[]')) AS each
)
UNION
SELECT task.id
FROM json_each(:queues) AS wanted
CROSS JOIN holdfast_tasks AS task
WHERE task.seq IN (
    SELECT entry.seq
    FROM holdfast_tasks AS entry
    WHERE entry.queue_name = wanted.value AND entry.ready
    ORDER BY coalesce(entry.concurrency_key, ''), entry.priority, entry.enqueued_at, entry.id
    LIMIT :most
)
UNION
SELECT newest.id
FROM (
    SELECT task.id
    FROM holdfast_tasks AS task
    WHERE task.id < :latest
    ORDER BY task.id DESC
    LIMIT :most
) AS newest;
