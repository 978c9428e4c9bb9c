-- How many tasks there are in each state, examining no more than :cap entries on each way: PENDING
-- and SCHEDULED by their indexes, what is in flight by the leases, what ended without a value by its
-- error, and everything else among the newest tasks. The rows in lower case say how many entries
-- were examined: at the cap there may be more. Where the index does not begin with the queue, that is
-- looked at after the limit, or few tasks of one queue would be searched for among all.
-- Differs from PostgreSQL in how leases name their tasks.
WITH newest AS MATERIALIZED (
    SELECT status, queue_name FROM holdfast_tasks ORDER BY id DESC LIMIT :cap
), due AS MATERIALIZED (
    SELECT * FROM (
        SELECT queue_name FROM holdfast_tasks
        WHERE :queue_name IS NULL AND due_at IS NOT NULL ORDER BY due_at LIMIT :cap) AS every
    UNION ALL
    SELECT * FROM (
        SELECT queue_name FROM holdfast_tasks
        WHERE queue_name = :queue_name AND due_at IS NOT NULL LIMIT :cap) AS one
), failed AS MATERIALIZED (
    SELECT status, queue_name FROM holdfast_tasks
    WHERE error_code IS NOT NULL ORDER BY error_code, id LIMIT :cap
)
SELECT 'PENDING', count(*) FROM (
    SELECT 1 FROM holdfast_tasks WHERE ready AND queue_name = :queue_name LIMIT :cap)
WHERE :queue_name IS NOT NULL
UNION ALL
SELECT 'PENDING', count(*) FROM (
    SELECT 1 FROM holdfast_tasks WHERE ready AND :queue_name IS NULL LIMIT :cap)
WHERE :queue_name IS NULL
UNION ALL
SELECT 'SCHEDULED', count(*) FROM due
UNION ALL
SELECT status, count(*) FROM holdfast_tasks
WHERE seq IN (SELECT task.value FROM holdfast_leases AS lease, json_each(iif(json_valid(lease.task_ids), lease.task_ids, '[]')) AS task)
    AND status IN ('CLAIMED', 'RUNNING')
    AND queue_name = ifnull(:queue_name, queue_name)
GROUP BY status
UNION ALL
SELECT status, count(*) FROM failed
WHERE queue_name = ifnull(:queue_name, queue_name)
GROUP BY status
UNION ALL
SELECT status, count(*) FROM newest
WHERE queue_name = ifnull(:queue_name, queue_name)
    AND status NOT IN ('PENDING', 'SCHEDULED', 'CLAIMED', 'RUNNING')
GROUP BY status
UNION ALL
SELECT 'newest', count(*) FROM newest
UNION ALL
SELECT 'due', count(*) FROM due
UNION ALL
SELECT 'failed', count(*) FROM failed;
