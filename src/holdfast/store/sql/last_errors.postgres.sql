-- The last attempt of each of these tasks that ended with an error. Differs from SQLite, where
-- attempts hang on the integer key, and which has no LATERAL.
SELECT
    task.id, row.attempt, row.outcome, row.will_retry, row.claim_token, row.started_at,
    row.finished_at, row.error_code, row.error_message, row.failed_reason, row.error,
    row.worker_id, row.worker_hostname, row.worker_pid, row.worker_process_name, row.exit_code,
    row.exit_signal, row.peak_memory_kb, row.cpu_time_us, row.created_at
FROM unnest(:ids::uuid[]) AS task (id)
CROSS JOIN LATERAL (
    SELECT *
    FROM holdfast_task_attempts AS made
    WHERE made.task_id = task.id AND made.error_code IS NOT NULL
    ORDER BY made.attempt DESC LIMIT 1
) AS row;
