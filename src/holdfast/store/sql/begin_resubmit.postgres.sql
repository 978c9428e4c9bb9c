-- resubmit: a workflow that has not completed and does not wind down (nor any that it is a part of), and
-- those of its parts, run again (the steps of those that end badly up to now follow). A pause is over.
-- Differs from SQLite in types.
WITH RECURSIVE above (workflow_id, parent_id, is_closed) AS (
    SELECT
        workflow_id, parent_id, status = 'COMPLETED' OR (stopping IS NOT NULL AND finished_at IS NULL)
    FROM holdfast_workflows
    WHERE workflow_id = :id::uuid
    UNION
    SELECT
        whole.workflow_id, whole.parent_id,
        whole.status = 'COMPLETED' OR (whole.stopping IS NOT NULL AND whole.finished_at IS NULL)
    FROM above
    JOIN holdfast_workflows AS whole ON whole.workflow_id = above.parent_id
), part (workflow_id) AS (
    SELECT workflow_id
    FROM holdfast_workflows
    WHERE workflow_id = :id::uuid AND NOT EXISTS (SELECT FROM above WHERE is_closed)
    UNION
    SELECT below.workflow_id
    FROM part
    JOIN holdfast_workflows AS below ON below.parent_id = part.workflow_id
    WHERE below.status <> 'COMPLETED' AND (below.stopping IS NULL OR below.finished_at IS NOT NULL)
)
UPDATE holdfast_workflows AS whole
SET status = 'RUNNING', paused_at = NULL, paused_by = NULL, stopping = NULL, stopped_by = NULL,
    stop_all = false, finished_at = NULL,
    deadline_at = CASE
        WHEN finished_at IS NULL THEN deadline_at
        ELSE clock.now + deadline_us * interval '1 microsecond'
    END,
    unique_slot = CASE
        WHEN finished_at IS NULL THEN unique_slot
        WHEN NOT EXISTS (
            SELECT FROM holdfast_workflows AS holder WHERE holder.unique_slot = whole.unique_key
        ) THEN unique_key
    END,
    resubmitting = 'bad', resubmit_fresh = :fresh::bool, resubmit_scope = NULL,
    resubmit_number = NULL, resubmitted_at = clock.now, updated_at = clock.now
FROM (SELECT :now AS now OFFSET 0) AS clock
WHERE workflow_id IN (SELECT workflow_id FROM part)
RETURNING workflow_id;
