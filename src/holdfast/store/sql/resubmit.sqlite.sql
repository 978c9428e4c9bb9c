-- resubmit: FAILED, CANCELLED, EXPIRED, STALLED, DROPPED → PENDING, SCHEDULED or WAITING.
-- Differs from PostgreSQL in how a batch is bound. A unique slot held by another task makes the
-- unique index refuse the statement; the caller has looked first and names the holder.
UPDATE holdfast_task_notes
SET progress = NULL, stage = NULL, stage_meta = NULL
WHERE task_seq IN (
        SELECT seq FROM holdfast_tasks
        WHERE id IN (SELECT value FROM json_each(:ids))
            AND status IN ('FAILED', 'CANCELLED', 'EXPIRED', 'STALLED', 'DROPPED')
    );
UPDATE holdfast_tasks
SET status = CASE
        WHEN deps_needed > 0 OR handed_over IS TRUE THEN 'WAITING'
        WHEN :run_at > :now THEN 'SCHEDULED'
        ELSE 'PENDING'
    END,
    ready = deps_needed <= 0 AND handed_over IS NOT TRUE AND ifnull(:run_at <= :now, 1),
    due_at = CASE WHEN deps_needed <= 0 AND handed_over IS NOT TRUE AND :run_at > :now THEN :run_at END,
    run_at = :run_at,
    enqueued_at = max(ifnull(:run_at, :now), :now),
    retry_count = CASE WHEN :keep_retries THEN retry_count ELSE 0 END,
    crash_count = CASE WHEN :keep_retries THEN crash_count ELSE 0 END,
    good_until = :good_until,
    expire_at = CASE WHEN handed_over IS NOT TRUE THEN :good_until END,
    unique_slot = unique_key,
    cancel_requested_at = NULL, cancel_code = NULL, parked = NULL, finished_at = NULL, completed_at = NULL, failed_at = NULL,
    error_code = NULL, failed_reason = NULL, result = NULL, next_retry_at = NULL, dead = NULL,
    claimed_at = NULL, claimed_by_worker_id = NULL, updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids))
    AND status IN ('FAILED', 'CANCELLED', 'EXPIRED', 'STALLED', 'DROPPED')
RETURNING
    CAST(id AS BLOB) AS id, CAST(status AS BLOB) AS status, CAST(queue_name AS BLOB) AS queue_name;
