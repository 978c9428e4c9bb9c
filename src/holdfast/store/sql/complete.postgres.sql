-- complete: RUNNING → COMPLETED, with its attempt row. Fenced by each task's own token.
-- Differs from SQLite: the batch is a jsonb map {id: [token, pid, result, peak memory, cpu time]}
-- (a result is JSON text carried as a string, so it survives exactly), and the attempt rows are
-- written by the same statement. It never touches leases: that would deadlock with the reaper.
WITH ended AS (
    UPDATE holdfast_tasks AS task
    SET status = 'COMPLETED',
        claim_token = NULL,
        worker_pid = NULL,
        result = :changes::jsonb -> encode(uuid_send(id), 'hex') ->> 2,
        finished_at = :now,
        completed_at = :now,
        unique_slot = NULL,
        updated_at = :now
    WHERE id = ANY (:changes_ids::uuid[])
        AND status = 'RUNNING'
        AND claim_token = (:changes::jsonb -> encode(uuid_send(id), 'hex') ->> 0)::uuid
    RETURNING
        id, attempt, started_at, finished_at, claimed_by_worker_id, worker_hostname,
        worker_process_name, workflow_id,
        :changes::jsonb -> encode(uuid_send(id), 'hex') AS change
), written AS (
    INSERT INTO holdfast_task_attempts (
        task_id, attempt, outcome, will_retry, claim_token, started_at, finished_at, created_at,
        worker_id, worker_hostname, worker_pid, worker_process_name, peak_memory_kb, cpu_time_us
    )
    SELECT
        id, attempt, 'COMPLETED', false, (change ->> 0)::uuid, started_at, finished_at, finished_at,
        claimed_by_worker_id, worker_hostname, (change ->> 1)::int, worker_process_name,
        (change ->> 3)::bigint, (change ->> 4)::bigint
    FROM ended
)
SELECT
    id AS key, id, attempt, workflow_id,
    (SELECT count(pg_notify(:hint_channel, p)) FROM unnest(:hint_payloads::text[]) AS p)
FROM ended;
