-- Tasks that may end soon: those that workers hold, the first of each of these queues, and the newest
-- of all. Differs from PostgreSQL: the keys of a lease are JSON; there is no LATERAL, so the keys of a
-- queue are gathered as JSON (a correlated IN would be asked of every task there is).
SELECT id
FROM holdfast_tasks
WHERE seq IN (
    SELECT each.value
    FROM holdfast_leases AS lease,
        json_each(iif(json_valid(lease.task_ids), lease.task_ids, '[]')) AS each
)
UNION
SELECT id
FROM holdfast_tasks
WHERE seq IN (
    SELECT first.value
    FROM json_each(:queues) AS wanted
    CROSS JOIN json_each((
        SELECT json_group_array(entry.seq)
        FROM (
            SELECT seq FROM holdfast_tasks
            WHERE queue_name = wanted.value AND ready
            ORDER BY coalesce(concurrency_key, ''), priority, enqueued_at, id
            LIMIT :each
        ) AS entry
    )) AS first
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
