-- What a worker has to know of a queue besides its tasks without a key: whether others wait there,
-- and the version of the limits.
SELECT
    (SELECT value FROM holdfast_meta WHERE name = 'limits'),
    (SELECT count(*) FROM (
        SELECT 1 FROM holdfast_tasks
        WHERE queue_name = :queue_name AND ready AND coalesce(concurrency_key, '') > ''
        LIMIT 1) AS first);
