-- Which claims ended in an attempt row. Differs from SQLite: the batch is a jsonb map {id: [token]}.
SELECT task_id AS key, claim_token
FROM holdfast_task_attempts
WHERE task_id = ANY (:changes_ids::uuid[])
    AND claim_token = (:changes::jsonb -> encode(uuid_send(task_id), 'hex') ->> 0)::uuid;
