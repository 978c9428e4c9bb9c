-- How many tasks there are in each state, counting no further than :cap. PENDING, SCHEDULED and
-- what is in flight come from their indexes; the rest from the newest tasks.
-- Differs from PostgreSQL in how leases name their tasks.
SELECT 'PENDING', count(*) FROM (
    SELECT 1 FROM holdfast_tasks
    WHERE ready AND queue_name = ifnull(:queue_name, queue_name) LIMIT :cap)
UNION ALL
SELECT 'SCHEDULED', count(*) FROM (
    SELECT 1 FROM holdfast_tasks
    WHERE due_at IS NOT NULL AND queue_name = ifnull(:queue_name, queue_name) LIMIT :cap)
UNION ALL
SELECT status, count(*) FROM holdfast_tasks
WHERE seq IN (SELECT task.value FROM holdfast_leases AS lease, json_each(lease.task_ids) AS task)
    AND status IN ('CLAIMED', 'RUNNING')
    AND queue_name = ifnull(:queue_name, queue_name)
GROUP BY status
UNION ALL
SELECT status, count(*) FROM (
    SELECT status FROM holdfast_tasks
    WHERE queue_name = ifnull(:queue_name, queue_name)
    ORDER BY id DESC LIMIT :cap)
WHERE status NOT IN ('PENDING', 'SCHEDULED', 'CLAIMED', 'RUNNING')
GROUP BY status;
