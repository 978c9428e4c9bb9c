-- The counters that say something else than the tasks in flight do: of each scope, what is held by
-- its counter less what came free, and how many tasks hold it. One statement, so one moment.
-- Differs from SQLite in how leases name their tasks.
WITH flight AS MATERIALIZED (
    SELECT queue_name, task_name, concurrency_key, slots
    FROM holdfast_tasks
    WHERE id = ANY (ARRAY(SELECT unnest(task_ids) FROM holdfast_leases))
        AND claim_token IS NOT NULL
        AND slots <> 0
), counted AS (
    SELECT scope, count(*) AS n
    FROM (
        SELECT 'queue ' || queue_name AS scope FROM flight WHERE slots & 1 <> 0
        UNION ALL
        SELECT 'task ' || task_name FROM flight WHERE slots & 2 <> 0
        UNION ALL
        SELECT 'queue ' || queue_name || ' ' || concurrency_key FROM flight WHERE slots & 4 <> 0
        UNION ALL
        SELECT 'task ' || task_name || ' ' || concurrency_key FROM flight WHERE slots & 8 <> 0
    ) AS held
    GROUP BY scope
), freed AS (
    SELECT scope, sum(n) AS n FROM holdfast_freed GROUP BY scope
)
SELECT counter.scope, counter.held - coalesce(freed.n, 0)::int, coalesce(counted.n, 0)::int
FROM holdfast_counters AS counter
LEFT JOIN freed ON freed.scope = counter.scope
LEFT JOIN counted ON counted.scope = counter.scope
WHERE counter.place = 0
    AND counter.held - coalesce(freed.n, 0) <> coalesce(counted.n, 0)
LIMIT 1000;
