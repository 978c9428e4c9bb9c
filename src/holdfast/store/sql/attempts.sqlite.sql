-- The attempts of one task, in order. Differs from PostgreSQL, where they hang on the id.
SELECT
    task.id, row.attempt, row.outcome, row.will_retry, row.claim_token, row.started_at,
    row.finished_at, row.error_code, row.error_message, row.failed_reason, row.error,
    row.worker_id, row.worker_hostname, row.worker_pid, row.worker_process_name, row.exit_code,
    row.exit_signal, row.peak_memory_kb, row.cpu_time_us, row.created_at
FROM holdfast_tasks AS task
JOIN holdfast_task_attempts AS row ON row.task_seq = task.seq
WHERE task.id = :id
ORDER BY row.attempt;
