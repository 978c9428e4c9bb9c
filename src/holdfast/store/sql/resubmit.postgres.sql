-- resubmit: FAILED, CANCELLED, EXPIRED, STALLED, DROPPED → PENDING, SCHEDULED or WAITING.
-- Differs from SQLite in how a batch is bound. A unique slot held by another task makes the unique
-- index refuse the statement; the caller has looked first and names the holder.
WITH resubmitted AS (
    UPDATE holdfast_tasks AS task
    SET (status, ready, due_at, run_at, enqueued_at) = (
            SELECT
                CASE
                    WHEN task.deps_needed > 0 OR task.handed_over IS TRUE THEN 'WAITING'
                    WHEN :run_at::timestamptz > now THEN 'SCHEDULED'
                    ELSE 'PENDING'
                END,
                task.deps_needed <= 0 AND task.handed_over IS NOT TRUE AND (:run_at::timestamptz > now) IS NOT TRUE,
                CASE
                    WHEN task.deps_needed <= 0 AND task.handed_over IS NOT TRUE AND :run_at::timestamptz > now
                    THEN :run_at::timestamptz
                END,
                :run_at::timestamptz,
                greatest(:run_at::timestamptz, now)
            FROM (SELECT :now AS now) AS clock
        ),
        retry_count = CASE WHEN :keep_retries::bool THEN retry_count ELSE 0 END,
        crash_count = CASE WHEN :keep_retries::bool THEN crash_count ELSE 0 END,
        good_until = :good_until::timestamptz,
        expire_at = CASE WHEN handed_over IS NOT TRUE THEN :good_until::timestamptz END,
        unique_slot = unique_key,
        cancel_requested_at = NULL, cancel_code = NULL, parked = NULL, finished_at = NULL, completed_at = NULL, failed_at = NULL,
        error_code = NULL, failed_reason = NULL, result = NULL, next_retry_at = NULL, dead = NULL,
        claimed_at = NULL, claimed_by_worker_id = NULL, updated_at = :now
    WHERE id = ANY (:ids::uuid[])
        AND status IN ('FAILED', 'CANCELLED', 'EXPIRED', 'STALLED', 'DROPPED')
    RETURNING id, status, queue_name
), forgotten AS (
    UPDATE holdfast_task_notes
    SET progress = NULL, stage = NULL, stage_meta = NULL
    WHERE task_id = ANY (ARRAY(SELECT id FROM resubmitted))
)
SELECT id, status, queue_name FROM resubmitted;
