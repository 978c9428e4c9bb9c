-- start: CLAIMED → RUNNING. Fenced: each task must still carry its claim's token.
-- Differs from SQLite: the batch is a jsonb map {id: [token, pid, process name]}, because joining
-- an unnest or a CTE to the table lets a stale plan read the whole table.
UPDATE holdfast_tasks AS task
SET status = 'RUNNING',
    attempt = attempt + 1,
    started_at = :now,
    first_started_at = coalesce(first_started_at, :now),
    retried_at = CASE WHEN retry_count > 0 THEN :now ELSE retried_at END,
    heartbeat_at = :now,
    next_retry_at = NULL,
    unique_slot = CASE WHEN unique_until = 'started' THEN NULL ELSE unique_slot END,
    worker_hostname = :hostname,
    worker_pid = (:changes::jsonb -> encode(uuid_send(id), 'hex') ->> 1)::int,
    worker_process_name = :changes::jsonb -> encode(uuid_send(id), 'hex') ->> 2,
    updated_at = :now
WHERE id = ANY (:changes_ids::uuid[])
    AND status = 'CLAIMED'
    AND claim_token = (:changes::jsonb -> encode(uuid_send(id), 'hex') ->> 0)::uuid
RETURNING id AS key, attempt, started_at;
