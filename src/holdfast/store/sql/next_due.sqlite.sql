-- When the next SCHEDULED task comes due, and how the clock stands now.
-- Differs from PostgreSQL in how a batch is bound.
SELECT
    (
        SELECT due_at FROM holdfast_tasks
        WHERE due_at IS NOT NULL AND seq NOT IN (SELECT value FROM json_each(:aside))
        ORDER BY due_at
        LIMIT 1
    ),
    :now;
