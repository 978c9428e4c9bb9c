-- Which of these queues have a PENDING task: one look into the index for each, in one statement.
-- A scalar subquery, which ends at its first entry in every version of SQLite.
-- Differs from PostgreSQL in how a batch is bound.
SELECT wanted.value
FROM json_each(:queues) AS wanted
WHERE (
    SELECT 1
    FROM holdfast_tasks AS task
    WHERE task.queue_name = wanted.value
        AND task.ready
    LIMIT 1
);
