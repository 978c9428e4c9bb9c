-- skip: WAITING → CANCELLED: what it waits for cannot happen any more. Cascades by the caller.
-- Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_tasks
SET status = 'CANCELLED', expire_at = NULL, finished_at = :now, result = :error,
    error_code = :error_code, failed_reason = :reason,
    unique_slot = CASE WHEN unique_until = 'deleted' THEN unique_slot END, updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids)) AND status = 'WAITING' AND deps_needed > deps_open
    AND handed_over IS NOT TRUE
RETURNING
    CAST(id AS BLOB) AS id, CAST(status AS BLOB) AS status,
    CAST(workflow_id AS BLOB) AS workflow_id;
