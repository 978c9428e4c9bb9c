-- start: CLAIMED → RUNNING. Fenced: each task must still carry its claim's token.
-- Differs from PostgreSQL: the batch is a JSON array of [key, token, pid, process name].
UPDATE holdfast_tasks AS task
SET status = 'RUNNING',
    attempt = attempt + 1,
    started_at = :now,
    first_started_at = ifnull(first_started_at, :now),
    retried_at = CASE WHEN retry_count > 0 THEN :now ELSE retried_at END,
    heartbeat_at = :now,
    next_retry_at = NULL,
    unique_slot = CASE WHEN unique_until = 'started' THEN NULL ELSE unique_slot END,
    worker_hostname = :hostname,
    worker_pid = change.pid,
    worker_process_name = change.process_name,
    updated_at = :now
FROM (
    SELECT
        json_extract(value, '$[0]') AS key,
        json_extract(value, '$[1]') AS token,
        json_extract(value, '$[2]') AS pid,
        json_extract(value, '$[3]') AS process_name
    FROM json_each(:changes)
) AS change
WHERE task.seq = change.key AND task.status = 'CLAIMED' AND task.claim_token = change.token
RETURNING seq AS key, attempt, started_at;
