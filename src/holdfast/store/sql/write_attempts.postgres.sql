-- The attempt rows of runs that ended otherwise than by success (complete writes its own).
-- Differs from SQLite in how rows are bound, and in the key: SQLite uses the integer key of a task.
-- A row that is there already is none of ours: whoever ended this attempt knows how it ended.
INSERT INTO holdfast_task_attempts (
    task_id, attempt, outcome, will_retry, claim_token, started_at, finished_at, created_at,
    error_code, error_message, failed_reason, error, worker_id, worker_hostname, worker_pid,
    worker_process_name, exit_code, exit_signal, peak_memory_kb, cpu_time_us
)
SELECT
    key, attempt, outcome, will_retry, token, started_at, finished_at, finished_at,
    error_code, error_message, failed_reason, error, worker_id, worker_hostname, worker_pid,
    worker_process_name, exit_code, exit_signal, peak_memory_kb, cpu_time_us
FROM
    unnest(
        :key::uuid[], :attempt::int[], :outcome::text[], :will_retry::bool[], :token::uuid[],
        :started_at::timestamptz[], :finished_at::timestamptz[], :error_code::text[],
        :error_message::text[], :failed_reason::text[], :error::text[], :worker_id::text[],
        :worker_hostname::text[], :worker_pid::int[], :worker_process_name::text[],
        :exit_code::int[], :exit_signal::int[], :peak_memory_kb::bigint[], :cpu_time_us::bigint[]
    ) AS row (
        key, attempt, outcome, will_retry, token, started_at, finished_at, error_code,
        error_message, failed_reason, error, worker_id, worker_hostname, worker_pid,
        worker_process_name, exit_code, exit_signal, peak_memory_kb, cpu_time_us
    )
ON CONFLICT (task_id, attempt) DO UPDATE
SET outcome = excluded.outcome, will_retry = excluded.will_retry,
    claim_token = excluded.claim_token, started_at = excluded.started_at,
    finished_at = excluded.finished_at, created_at = excluded.created_at,
    error_code = excluded.error_code, error_message = excluded.error_message,
    failed_reason = excluded.failed_reason, error = excluded.error,
    worker_id = excluded.worker_id, worker_hostname = excluded.worker_hostname,
    worker_pid = excluded.worker_pid, worker_process_name = excluded.worker_process_name,
    exit_code = excluded.exit_code, exit_signal = excluded.exit_signal,
    peak_memory_kb = excluded.peak_memory_kb, cpu_time_us = excluded.cpu_time_us;
