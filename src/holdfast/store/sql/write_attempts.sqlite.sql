-- The attempt rows of runs that ended otherwise than by success (complete writes its own).
-- Differs from PostgreSQL in how rows are bound, and in the key: here the integer key of a task.
-- A row that is there already is none of ours: whoever ended this attempt knows how it ended.
INSERT OR REPLACE INTO holdfast_task_attempts (
    task_seq, attempt, outcome, will_retry, claim_token, started_at, finished_at, created_at,
    error_code, error_message, failed_reason, error, worker_id, worker_hostname, worker_pid,
    worker_process_name, exit_code, exit_signal, peak_memory_kb, cpu_time_us
)
VALUES (
    :key, :attempt, :outcome, :will_retry, :token, :started_at, :finished_at, :finished_at,
    :error_code, :error_message, :failed_reason, :error, :worker_id, :worker_hostname, :worker_pid,
    :worker_process_name, :exit_code, :exit_signal, :peak_memory_kb, :cpu_time_us
);
