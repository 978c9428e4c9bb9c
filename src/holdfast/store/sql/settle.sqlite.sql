-- settle: WAITING → COMPLETED, CANCELLED or FAILED: all that a step has added has ended. Its value is
-- read from what its scope returns; its error is that of the first that ended badly.
-- Differs from PostgreSQL in types.
UPDATE holdfast_tasks AS task
SET status = final.status,
    finished_at = :now,
    completed_at = iif(final.status = 'COMPLETED', :now, NULL),
    failed_at = iif(final.status = 'FAILED', :now, NULL),
    result = CASE final.status
        WHEN 'CANCELLED' THEN :cancel_error
        WHEN 'FAILED' THEN ifnull(final.result, :failed_error)
    END,
    error_code = CASE final.status
        WHEN 'CANCELLED' THEN 'TASK_CANCELLED'
        WHEN 'FAILED' THEN ifnull(final.error_code, 'UPSTREAM_FAILED')
    END,
    failed_reason = CASE final.status
        WHEN 'CANCELLED' THEN :cancel_reason
        WHEN 'FAILED' THEN :failed_reason
    END,
    unique_slot = iif(task.unique_until = 'deleted', task.unique_slot, NULL),
    updated_at = :now
FROM (
    SELECT
        held.seq, cause.result, cause.error_code,
        CASE
            WHEN (
                SELECT ifnull(sum(bad), 0) FROM holdfast_step_counts WHERE scope_id = :id
            ) = 0 THEN 'COMPLETED'
            WHEN held.cancel_requested_at IS NOT NULL OR whole.stopping = 'cancel' THEN 'CANCELLED'
            ELSE 'FAILED'
        END AS status
    FROM holdfast_tasks AS held
    LEFT JOIN holdfast_workflows AS whole ON whole.workflow_id = held.workflow_id
    LEFT JOIN holdfast_tasks AS cause ON cause.id = :error_id
    WHERE held.id = :id
) AS final
WHERE task.seq = final.seq AND task.status = 'WAITING' AND task.handed_over
    AND NOT EXISTS (
        SELECT 1 FROM holdfast_scopes AS scope
        JOIN holdfast_workflows AS again ON again.workflow_id = scope.workflow_id
        WHERE scope.scope_id = :id AND again.resubmitting IS NOT NULL
    )
RETURNING CAST(id AS BLOB) AS id, CAST(status AS BLOB) AS status;
