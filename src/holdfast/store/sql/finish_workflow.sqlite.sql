-- finish: RUNNING, PAUSED → COMPLETED, CANCELLED or FAILED: all its steps have ended.
-- Differs from PostgreSQL in types.
UPDATE holdfast_workflows
SET status = CASE
        WHEN (
            SELECT ifnull(sum(bad), 0) FROM holdfast_step_counts WHERE scope_id = :id
        ) = 0 THEN 'COMPLETED'
        WHEN stopping = 'cancel' THEN 'CANCELLED'
        ELSE 'FAILED'
    END,
    finished_at = :now, paused_at = NULL, paused_by = NULL, unique_slot = NULL, updated_at = :now
WHERE workflow_id = :id AND finished_at IS NULL AND resubmitting IS NULL
RETURNING
    CAST(workflow_id AS BLOB) AS workflow_id, CAST(status AS BLOB) AS status,
    CAST(step_id AS BLOB) AS step_id;
