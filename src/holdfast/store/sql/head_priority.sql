-- The priority of the task that comes first in a queue, whoever knows it: what an urgent one would
-- be noticed by, without a claim.
SELECT priority
FROM holdfast_tasks
WHERE queue_name = :queue_name
    AND ready
    AND coalesce(concurrency_key, '') = ''
ORDER BY priority, enqueued_at, id
LIMIT 1;
