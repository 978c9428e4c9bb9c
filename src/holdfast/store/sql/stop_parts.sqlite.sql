-- What stops a whole stops the workflows that are parts of it, except for a failure: those have begun.
-- One that cleans up goes on, as other steps that do.
-- Differs from PostgreSQL in types.
UPDATE holdfast_workflows AS part
SET stopping = whole.stopping, stopped_by = whole.stopped_by, stop_all = whole.stop_all,
    status = 'RUNNING', paused_at = NULL, paused_by = NULL, updated_at = :now
FROM (
    SELECT workflow_id, stopping, stopped_by, stop_all FROM holdfast_workflows
) AS whole
WHERE whole.workflow_id = :id AND whole.stopping IN ('cancel', 'deadline')
    AND part.parent_id = whole.workflow_id AND part.finished_at IS NULL
    AND (
        part.stopping IS NULL OR part.stopping = 'fail_fast'
        OR (part.stopping = 'deadline' AND whole.stopping = 'cancel')
        OR (whole.stop_all AND NOT part.stop_all)
    )
    AND (
        whole.stop_all OR NOT EXISTS (
            SELECT 1 FROM holdfast_tasks AS step WHERE step.id = part.step_id AND step.step_cleanup
        )
    )
RETURNING CAST(workflow_id AS BLOB) AS workflow_id;
