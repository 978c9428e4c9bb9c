-- release: CLAIMED → PENDING, at its old place in the queue and at no cost. Fenced.
-- Differs from PostgreSQL: the batch is an array of [key, token].
UPDATE holdfast_tasks AS task
SET status = 'PENDING', ready = 1, claim_token = NULL, claimed_at = NULL,
    claimed_by_worker_id = NULL, expire_at = good_until, updated_at = :now
FROM (
    SELECT json_extract(value, '$[0]') AS key, json_extract(value, '$[1]') AS token
    FROM json_each(:changes)
) AS change
WHERE task.seq = change.key AND task.status = 'CLAIMED' AND task.claim_token = change.token
RETURNING
    seq AS key, CAST(id AS BLOB) AS id, CAST(workflow_id AS BLOB) AS workflow_id, slots,
    CAST(queue_name AS BLOB) AS queue_name, CAST(task_name AS BLOB) AS task_name;
