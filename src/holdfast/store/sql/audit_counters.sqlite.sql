-- The counters that say something else than the tasks in flight do: of each scope, what is held by
-- its counter less what came free, and how many tasks hold it. One statement, so one moment.
-- Differs from PostgreSQL in how leases name their tasks.
WITH flight AS MATERIALIZED (
    SELECT queue_name, task_name, concurrency_key, slots
    FROM holdfast_tasks
    WHERE seq IN (SELECT task.value FROM holdfast_leases AS lease, json_each(lease.task_ids) AS task)
        AND claim_token IS NOT NULL
        AND slots <> 0
), counted AS MATERIALIZED (
    SELECT scope, count(*) AS n
    FROM (
        SELECT 'queue ' || queue_name AS scope FROM flight WHERE slots & 1
        UNION ALL
        SELECT 'task ' || task_name FROM flight WHERE slots & 2
        UNION ALL
        SELECT 'queue ' || queue_name || ' ' || concurrency_key FROM flight WHERE slots & 4
        UNION ALL
        SELECT 'task ' || task_name || ' ' || concurrency_key FROM flight WHERE slots & 8
    )
    GROUP BY scope
), freed AS MATERIALIZED (
    SELECT scope, sum(n) AS n FROM holdfast_freed GROUP BY scope
)
SELECT counter.scope, counter.held - ifnull(freed.n, 0), ifnull(counted.n, 0)
FROM holdfast_counters AS counter
LEFT JOIN freed ON freed.scope = counter.scope
LEFT JOIN counted ON counted.scope = counter.scope
WHERE counter.place = 0 AND counter.held - ifnull(freed.n, 0) <> ifnull(counted.n, 0)
LIMIT 1000;
