-- Steps ended badly whose workflow pauses then: what waits for them is not told until it is resumed.
-- Differs from SQLite in how a batch is bound.
UPDATE holdfast_tasks AS task
SET parked = 'pause'
WHERE task.id = ANY (:ids::uuid[]) AND task.step_required AND coalesce(task.parked, '') NOT IN ('pause', 'edges')
    AND task.status IN ('FAILED', 'STALLED', 'DROPPED', 'EXPIRED', 'CANCELLED')
    AND task.error_code NOT IN ('UPSTREAM_FAILED', 'UPSTREAM_CANCELLED', 'UPSTREAM_SUCCEEDED')
    AND (
        SELECT whole.on_failure = 'pause' AND whole.stopping IS NULL AND whole.finished_at IS NULL
        FROM holdfast_workflows AS whole
        WHERE whole.workflow_id = task.workflow_id
    )
RETURNING id, workflow_id;
