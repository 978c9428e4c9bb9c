-- The next concurrency key of which tasks wait in a queue.
SELECT coalesce(concurrency_key, '')
FROM holdfast_tasks
WHERE queue_name = :queue_name
    AND ready
    AND coalesce(concurrency_key, '') > :after_key
ORDER BY coalesce(concurrency_key, '')
LIMIT 1;
