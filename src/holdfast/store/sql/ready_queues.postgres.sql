-- Which of these queues have a PENDING task: one look into the index for each, in one statement.
-- LATERAL with a limit, so that each look ends at its first entry: a join would read the index from
-- end to end.
-- Differs from SQLite in how a batch is bound.
SELECT wanted.queue_name
FROM unnest(:queues::text[]) AS wanted (queue_name)
CROSS JOIN LATERAL (
    SELECT
    FROM holdfast_tasks AS task
    WHERE task.queue_name = wanted.queue_name
        AND task.ready
    LIMIT 1
) AS found;
