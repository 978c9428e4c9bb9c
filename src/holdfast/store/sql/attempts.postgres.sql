-- The attempts of one task, in order. Differs from SQLite, where they hang on the integer key.
SELECT
    task_id, attempt, outcome, will_retry, claim_token, started_at, finished_at, error_code,
    error_message, failed_reason, error, worker_id, worker_hostname, worker_pid,
    worker_process_name, exit_code, exit_signal, peak_memory_kb, cpu_time_us, created_at
FROM holdfast_task_attempts
WHERE task_id = :id::uuid
ORDER BY attempt;
