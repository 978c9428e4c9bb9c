-- finish: RUNNING, PAUSED → COMPLETED, CANCELLED or FAILED: all its steps have ended.
-- Differs from SQLite in types, and the hint leaves with the commit.
UPDATE holdfast_workflows AS whole
SET status = CASE
        WHEN ended.bad = 0 THEN 'COMPLETED'
        WHEN whole.stopping = 'cancel' THEN 'CANCELLED'
        ELSE 'FAILED'
    END,
    finished_at = :now, paused_at = NULL, paused_by = NULL, unique_slot = NULL, updated_at = :now
FROM (
    SELECT coalesce(sum(bad), 0) AS bad FROM holdfast_step_counts WHERE scope_id = :id::uuid
) AS ended
WHERE whole.workflow_id = :id::uuid AND whole.finished_at IS NULL AND resubmitting IS NULL
RETURNING
    workflow_id, status, step_id,
    (SELECT count(pg_notify(:hint_channel, p)) FROM unnest(:hint_payloads::text[]) AS p);
