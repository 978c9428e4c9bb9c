-- When the next SCHEDULED task comes due, and how the clock stands now.
-- Differs from PostgreSQL in how a batch is bound.
SELECT
    (
        SELECT due_at FROM holdfast_tasks
        WHERE due_at IS NOT NULL AND seq NOT IN (SELECT value FROM json_each(:aside))
            AND iif(:careful, status = 'SCHEDULED' AND claim_token IS NULL
                AND finished_at IS NULL AND error_code IS NULL
                AND priority BETWEEN 1 AND 100
                AND length(id) = 36 AND id NOT GLOB '*[^0-9a-f-]*'
                AND length(task_name) BETWEEN 1 AND 255 AND length(queue_name) BETWEEN 1 AND 100
                AND attempt BETWEEN 0 AND 2147483647 AND retry_count BETWEEN 0 AND 2147483647
                AND crash_count BETWEEN 0 AND 2147483647 AND max_retries BETWEEN 0 AND 2147483647
                AND enqueued_at < 253402300800000000 AND created_at < 253402300800000000
                AND ifnull(length(task_options), 0) <= 10000000
                AND ifnull(length(trace_context), 0) <= 10000000, 1)
        ORDER BY due_at
        LIMIT 1
    ),
    :now;
