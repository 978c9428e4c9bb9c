-- fail, retry, snooze, interrupt, stall, recover, ack_cancel: the seven ways to leave RUNNING other
-- than by success. They share one statement because they share their guard (RUNNING, and each
-- task's own token) and the rules that the database, not the worker, has the last word on:
--   a requested cancel turns every one of them into CANCELLED (a request to cancel
--   is never lost, not even with the worker);
--   a retry that is not allowed any more, or would come after good_until, is a fail.
-- Differs from PostgreSQL: the batch is an array of [key, token, {verb, status, …}], and the
-- decision is made in a subquery, since SQLite has no LATERAL.
UPDATE holdfast_tasks AS task
SET status = final.status,
    ready = final.status = 'PENDING',
    due_at = CASE WHEN final.status = 'SCHEDULED' THEN final.at END,
    run_at = CASE WHEN final.status = 'SCHEDULED' THEN final.at ELSE task.run_at END,
    enqueued_at = CASE WHEN final.live AND final.moves THEN final.at ELSE task.enqueued_at END,
    next_retry_at =
        CASE WHEN final.live AND final.verb = 'retry' THEN final.at ELSE task.next_retry_at END,
    expire_at = CASE WHEN final.live THEN task.good_until END,
    retry_count = task.retry_count + (final.live AND final.verb = 'retry'),
    crash_count = task.crash_count + (final.verb = 'recover'),
    finished_at = CASE WHEN NOT final.live THEN :now END,
    failed_at = CASE WHEN final.status IN ('FAILED', 'STALLED') THEN :now END,
    result = CASE
        WHEN final.status = 'CANCELLED' AND task.cancel_code = 'WORKFLOW_DEADLINE'
            THEN :deadline_error
        WHEN final.status = 'CANCELLED' THEN :cancel_error
        WHEN NOT final.live THEN final.error
    END,
    error_code = CASE
        WHEN final.status = 'CANCELLED' THEN coalesce(task.cancel_code, 'TASK_CANCELLED')
        WHEN NOT final.live THEN final.error_code
    END,
    failed_reason = CASE
        WHEN final.status = 'CANCELLED' AND task.cancel_code = 'WORKFLOW_DEADLINE'
            THEN :deadline_reason
        WHEN final.status = 'CANCELLED' THEN :cancel_reason
        WHEN NOT final.live THEN final.failed_reason
    END,
    dead = CASE WHEN final.status IN ('FAILED', 'STALLED') AND final.dead_letter THEN 1 END,
    unique_slot = CASE WHEN final.live OR task.unique_until = 'deleted' THEN task.unique_slot END,
    claimed_at = CASE WHEN NOT final.live THEN task.claimed_at END,
    claimed_by_worker_id = CASE WHEN NOT final.live THEN task.claimed_by_worker_id END,
    claim_token = NULL,
    worker_pid = NULL,
    updated_at = :now
FROM (
    SELECT decided.*, decided.status IN ('PENDING', 'SCHEDULED') AS live
    FROM (
        SELECT
            wish.*,
            CASE
                WHEN held.cancel_requested_at IS NOT NULL THEN 'CANCELLED'
                WHEN wish.verb = 'retry'
                    AND (held.retry_count >= wish.allowed OR wish.at >= held.good_until)
                    THEN 'FAILED'
                ELSE wish.wished
            END AS status
        FROM (
            SELECT
                json_extract(value, '$[0]') AS key,
                json_extract(value, '$[1]') AS token,
                json_extract(value, '$[2].verb') AS verb,
                json_extract(value, '$[2].status') AS wished,
                json_extract(value, '$[2].allowed') AS allowed,
                json_extract(value, '$[2].error') AS error,
                json_extract(value, '$[2].error_code') AS error_code,
                json_extract(value, '$[2].failed_reason') AS failed_reason,
                json_extract(value, '$[2].dead_letter') AS dead_letter,
                :now + ifnull(json_extract(value, '$[2].delay_us'), 0) AS at,
                json_extract(value, '$[2].delay_us') IS NOT NULL
                    OR json_extract(value, '$[2].verb') = 'retry' AS moves
            FROM json_each(:changes)
        ) AS wish
        CROSS JOIN holdfast_tasks AS held
        WHERE held.seq = wish.key
            AND held.status = 'RUNNING'
            AND held.claim_token = wish.token
            AND (held.cancel_requested_at IS NOT NULL OR wish.verb <> 'ack_cancel')
    ) AS decided
) AS final
WHERE task.seq = final.key
RETURNING
    seq AS key, CAST(id AS BLOB) AS id, CAST(status AS BLOB) AS status, attempt, started_at,
    updated_at, CAST(worker_hostname AS BLOB) AS worker_hostname,
    CAST(worker_process_name AS BLOB) AS worker_process_name,
    CAST(queue_name AS BLOB) AS queue_name, CAST(workflow_id AS BLOB) AS workflow_id,
    CAST(task_name AS BLOB) AS task_name, slots;
