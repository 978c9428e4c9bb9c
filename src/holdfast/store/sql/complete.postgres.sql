-- complete: RUNNING → COMPLETED, with its attempt row. Fenced by each task's own token.
-- Differs from SQLite: the batch is a jsonb map {id: [token, pid, result, peak memory, cpu time]}
-- (a result is JSON text carried as a string, so it survives exactly), and the attempt rows are
-- written by the same statement (over one that is there already, which is none of ours). It never
-- touches leases: that would deadlock with the reaper.
WITH ended AS (
    UPDATE holdfast_tasks AS task
    SET status = 'COMPLETED',
        claim_token = NULL,
        worker_pid = NULL,
        result = :changes::jsonb -> encode(uuid_send(id), 'hex') ->> 2,
        finished_at = :now,
        completed_at = :now,
        unique_slot = CASE WHEN unique_until = 'deleted' THEN unique_slot END,
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
        id, attempt, 'COMPLETED', false, (change ->> 0)::uuid, coalesce(started_at, finished_at),
        finished_at, finished_at,
        claimed_by_worker_id, worker_hostname, (change ->> 1)::int, worker_process_name,
        (change ->> 3)::bigint, (change ->> 4)::bigint
    FROM ended
    ON CONFLICT (task_id, attempt) DO UPDATE
    SET outcome = excluded.outcome, will_retry = excluded.will_retry,
        claim_token = excluded.claim_token, started_at = excluded.started_at,
        finished_at = excluded.finished_at, created_at = excluded.created_at,
        error_code = NULL, error_message = NULL, failed_reason = NULL, error = NULL,
        worker_id = excluded.worker_id, worker_hostname = excluded.worker_hostname,
        worker_pid = excluded.worker_pid, worker_process_name = excluded.worker_process_name,
        exit_code = NULL, exit_signal = NULL,
        peak_memory_kb = excluded.peak_memory_kb, cpu_time_us = excluded.cpu_time_us
)
SELECT
    id AS key, attempt, CASE WHEN workflow_id IS NOT NULL THEN id END AS step_id,
    (SELECT count(pg_notify(:hint_channel, p)) FROM unnest(:hint_payloads::text[]) AS p)
FROM ended;
