-- How many tasks there are in each state, counting no further than :cap. PENDING, SCHEDULED and
-- what is in flight come from their indexes; the rest from the newest tasks.
-- Differs from SQLite in how leases name their tasks.
SELECT 'PENDING', count(*) FROM (
    SELECT FROM holdfast_tasks
    WHERE ready AND queue_name = coalesce(:queue_name::text, queue_name) LIMIT :cap::int) AS few
UNION ALL
SELECT 'SCHEDULED', count(*) FROM (
    SELECT FROM holdfast_tasks
    WHERE due_at IS NOT NULL AND queue_name = coalesce(:queue_name::text, queue_name)
    LIMIT :cap::int) AS few
UNION ALL
SELECT status, count(*) FROM holdfast_tasks
WHERE id = ANY (ARRAY(SELECT unnest(task_ids) FROM holdfast_leases))
    AND status IN ('CLAIMED', 'RUNNING')
    AND queue_name = coalesce(:queue_name::text, queue_name)
GROUP BY status
UNION ALL
SELECT status, count(*) FROM (
    SELECT status FROM holdfast_tasks
    WHERE queue_name = coalesce(:queue_name::text, queue_name)
    ORDER BY id DESC LIMIT :cap::int) AS newest
WHERE status NOT IN ('PENDING', 'SCHEDULED', 'CLAIMED', 'RUNNING')
GROUP BY status;
