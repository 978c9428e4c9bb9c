-- cancel: WAITING, SCHEDULED, PENDING, CLAIMED → CANCELLED at once, and
-- request_cancel: RUNNING → RUNNING with the wish noted; its worker hears of it.
-- Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_tasks
SET status = CASE WHEN status = 'RUNNING' THEN status ELSE 'CANCELLED' END,
    ready = 0,
    due_at = NULL,
    expire_at = NULL,
    claim_token = CASE WHEN status = 'RUNNING' THEN claim_token END,
    finished_at = CASE WHEN status <> 'RUNNING' THEN :now END,
    result = CASE WHEN status <> 'RUNNING' THEN :cancel_error END,
    error_code = CASE WHEN status <> 'RUNNING' THEN :cancel_code END,
    failed_reason = CASE WHEN status <> 'RUNNING' THEN :cancel_reason END,
    unique_slot = CASE
        WHEN status = 'RUNNING' OR unique_until = 'deleted' THEN unique_slot
    END,
    cancel_requested_at = CASE WHEN status = 'RUNNING' THEN ifnull(cancel_requested_at, :now) END,
    cancel_code = CASE WHEN status = 'RUNNING' THEN ifnull(cancel_code, :cancel_code) END,
    updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids))
    AND status IN ('WAITING', 'SCHEDULED', 'PENDING', 'CLAIMED', 'RUNNING')
RETURNING
    CAST(id AS BLOB) AS id, CAST(status AS BLOB) AS status,
    CAST(workflow_id AS BLOB) AS workflow_id;
