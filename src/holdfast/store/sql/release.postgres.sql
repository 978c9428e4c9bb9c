-- release: CLAIMED → PENDING, at its old place in the queue and at no cost. Fenced.
-- Differs from SQLite: the batch is a jsonb map {id: [token]}.
WITH released AS (
    UPDATE holdfast_tasks AS task
    SET status = 'PENDING', ready = true, claim_token = NULL, claimed_at = NULL,
        claimed_by_worker_id = NULL, expire_at = good_until, updated_at = :now
    WHERE id = ANY (:changes_ids::uuid[])
        AND status = 'CLAIMED'
        AND claim_token = (:changes::jsonb -> encode(uuid_send(id), 'hex') ->> 0)::uuid
    RETURNING id, workflow_id, slots, queue_name, task_name
)
SELECT
    id AS key, id, workflow_id, slots, queue_name, task_name,
    (SELECT count(pg_notify(:hint_channel, p)) FROM unnest(:hint_payloads::text[]) AS p)
FROM released;
