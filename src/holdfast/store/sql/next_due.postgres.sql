-- When the next SCHEDULED task comes due, and how the clock stands now.
-- Differs from SQLite in how a batch is bound.
SELECT
    (
        SELECT due_at FROM holdfast_tasks
        WHERE due_at IS NOT NULL AND id <> ALL (:aside::uuid[])
            AND CASE
                WHEN :careful::boolean THEN status = 'SCHEDULED' AND claim_token IS NULL
                    AND finished_at IS NULL AND error_code IS NULL
                    AND length(task_name) BETWEEN 1 AND 255
                    AND length(queue_name) BETWEEN 1 AND 100
                    AND isfinite(enqueued_at) AND isfinite(created_at)
                    AND coalesce(octet_length(task_options), 0) <= 10000000
                    AND coalesce(octet_length(trace_context), 0) <= 10000000
                ELSE true
            END
        ORDER BY due_at
        LIMIT 1
    ),
    :now;
