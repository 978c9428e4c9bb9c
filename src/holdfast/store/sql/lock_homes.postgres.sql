-- Lock the scopes of these steps, in their order. Differs from SQLite, where the writer is alone.
SELECT scope_id
FROM holdfast_scopes
WHERE scope_id = ANY (ARRAY(
        SELECT task.scope_id FROM holdfast_tasks AS task WHERE task.id = ANY (:ids::uuid[])
    ))
ORDER BY scope_id
FOR UPDATE;
