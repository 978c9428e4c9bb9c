-- The steps of a workflow that ended badly by themselves, if it has not completed and does not wind
-- down. Differs from SQLite in types.
SELECT id
FROM holdfast_tasks
WHERE workflow_id = :id::uuid AND status IN ('FAILED', 'CANCELLED', 'EXPIRED', 'STALLED', 'DROPPED')
    AND error_code NOT IN ('UPSTREAM_FAILED', 'UPSTREAM_CANCELLED', 'UPSTREAM_SUCCEEDED')
    AND NOT EXISTS (
        SELECT FROM holdfast_workflows AS whole
        WHERE whole.workflow_id = :id::uuid
            AND (whole.status = 'COMPLETED' OR (whole.stopping IS NOT NULL AND whole.finished_at IS NULL))
    )
ORDER BY id;
