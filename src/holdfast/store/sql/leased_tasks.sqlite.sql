-- The tasks of a lease that still carry its token. Differs from PostgreSQL: the writer is alone.
SELECT
    seq AS key, id, status, attempt, retry_count, max_retries, crash_count, good_until,
    task_options, worker_pid, claimed_by_worker_id, worker_hostname, task_name, queue_name,
    1 AS locked
FROM holdfast_tasks
WHERE seq IN (SELECT value FROM json_each(:keys)) AND claim_token = :token;
