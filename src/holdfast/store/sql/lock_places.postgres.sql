-- Lock the count rows of these steps, in their order. Differs from SQLite, where the writer is alone.
SELECT scope_id, part
FROM holdfast_step_counts
WHERE (scope_id, part) IN (
        SELECT task.scope_id, task.step_part
        FROM holdfast_tasks AS task
        WHERE task.id = ANY (:ids::uuid[])
    )
ORDER BY scope_id, part
FOR UPDATE;
