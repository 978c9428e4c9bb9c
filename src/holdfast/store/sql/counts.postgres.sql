-- How many tasks there are in each state, examining no more than :cap entries on each way: PENDING
-- and SCHEDULED by their indexes, what is in flight by the leases, what ended without a value by its
-- error, and everything else among the newest tasks. The rows in lower case say how many entries
-- were examined: at the cap there may be more. Where the index does not begin with the queue, that is
-- looked at after the limit, or few tasks of one queue would be searched for among all.
-- (BETWEEN, for one queue: an equality would not count in the order, and the index of all queues
-- could be taken.) Differs from SQLite in how leases name their tasks.
WITH newest AS MATERIALIZED (
    SELECT status, queue_name FROM holdfast_tasks ORDER BY id DESC LIMIT :cap::int
), due AS MATERIALIZED (
    SELECT * FROM (
        SELECT queue_name FROM holdfast_tasks
        WHERE :queue_name::text IS NULL AND due_at IS NOT NULL ORDER BY due_at LIMIT :cap::int) AS every
    UNION ALL
    SELECT * FROM (
        SELECT queue_name FROM holdfast_tasks
        WHERE queue_name BETWEEN :queue_name::text AND :queue_name::text AND due_at IS NOT NULL
        ORDER BY queue_name, due_at LIMIT :cap::int) AS one
), failed AS MATERIALIZED (
    SELECT status, queue_name FROM holdfast_tasks
    WHERE error_code IS NOT NULL ORDER BY error_code, id LIMIT :cap::int
)
SELECT 'PENDING', count(*) FROM (
    SELECT FROM holdfast_tasks WHERE ready AND queue_name = :queue_name::text LIMIT :cap::int) AS few
WHERE :queue_name::text IS NOT NULL
UNION ALL
SELECT 'PENDING', count(*) FROM (
    SELECT FROM holdfast_tasks WHERE ready AND :queue_name::text IS NULL LIMIT :cap::int) AS few
WHERE :queue_name::text IS NULL
UNION ALL
SELECT 'SCHEDULED', count(*) FROM due
UNION ALL
SELECT status, count(*) FROM holdfast_tasks
WHERE id = ANY (ARRAY(SELECT unnest(task_ids) FROM holdfast_leases))
    AND status IN ('CLAIMED', 'RUNNING')
    AND queue_name = coalesce(:queue_name::text, queue_name)
GROUP BY status
UNION ALL
SELECT status, count(*) FROM failed
WHERE queue_name = coalesce(:queue_name::text, queue_name)
GROUP BY status
UNION ALL
SELECT status, count(*) FROM newest
WHERE queue_name = coalesce(:queue_name::text, queue_name)
    AND status NOT IN ('PENDING', 'SCHEDULED', 'CLAIMED', 'RUNNING')
GROUP BY status
UNION ALL
SELECT 'newest', count(*) FROM newest
UNION ALL
SELECT 'due', count(*) FROM due
UNION ALL
SELECT 'failed', count(*) FROM failed;
