-- cancel: WAITING, SCHEDULED, PENDING, CLAIMED → CANCELLED at once, and
-- request_cancel: RUNNING → RUNNING with the wish noted; its worker hears of it.
-- (One that has handed over is asked, too: it ends with what it added.)
-- Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_tasks
SET status = CASE WHEN status = 'RUNNING' OR handed_over IS TRUE THEN status ELSE 'CANCELLED' END,
    ready = 0,
    due_at = NULL,
    expire_at = NULL,
    claim_token = CASE WHEN status = 'RUNNING' OR handed_over IS TRUE THEN claim_token END,
    finished_at = CASE WHEN status <> 'RUNNING' AND handed_over IS NOT TRUE THEN :now END,
    result = CASE WHEN status <> 'RUNNING' AND handed_over IS NOT TRUE THEN :cancel_error END,
    error_code = CASE WHEN status <> 'RUNNING' AND handed_over IS NOT TRUE THEN :cancel_code END,
    failed_reason = CASE WHEN status <> 'RUNNING' AND handed_over IS NOT TRUE THEN :cancel_reason END,
    unique_slot = CASE
        WHEN status = 'RUNNING' OR handed_over IS TRUE OR unique_until = 'deleted' THEN unique_slot
    END,
    cancel_requested_at = CASE WHEN status = 'RUNNING' OR handed_over IS TRUE THEN ifnull(cancel_requested_at, :now) END,
    cancel_code = CASE WHEN status = 'RUNNING' OR handed_over IS TRUE THEN ifnull(cancel_code, :cancel_code) END,
    updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids))
    AND status IN ('WAITING', 'SCHEDULED', 'PENDING', 'CLAIMED', 'RUNNING')
RETURNING
    CAST(id AS BLOB) AS id, CAST(status AS BLOB) AS status,
    CAST(workflow_id AS BLOB) AS workflow_id, slots,
    CAST(queue_name AS BLOB) AS queue_name, CAST(task_name AS BLOB) AS task_name;
