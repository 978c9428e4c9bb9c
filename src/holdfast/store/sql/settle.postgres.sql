-- settle: WAITING → COMPLETED, CANCELLED or FAILED: all that a step has added has ended. Its value is
-- read from what its scope returns; its error is that of the first that ended badly.
-- Differs from SQLite in types.
UPDATE holdfast_tasks AS task
SET (
        status, finished_at, completed_at, failed_at, result, error_code, failed_reason, unique_slot
    ) = (
        SELECT
            final.status,
            now,
            CASE WHEN final.status = 'COMPLETED' THEN now END,
            CASE WHEN final.status = 'FAILED' THEN now END,
            CASE final.status
                WHEN 'CANCELLED' THEN :cancel_error
                WHEN 'FAILED' THEN coalesce(cause.result, :failed_error)
            END,
            CASE final.status
                WHEN 'CANCELLED' THEN 'TASK_CANCELLED'
                WHEN 'FAILED' THEN coalesce(cause.error_code, 'UPSTREAM_FAILED')
            END,
            CASE final.status
                WHEN 'CANCELLED' THEN :cancel_reason
                WHEN 'FAILED' THEN :failed_reason
            END,
            CASE WHEN task.unique_until = 'deleted' THEN task.unique_slot END
        FROM (
            SELECT
                :now AS now,
                CASE
                    WHEN (
                        SELECT coalesce(sum(bad), 0)
                        FROM holdfast_step_counts
                        WHERE scope_id = :id::uuid
                    ) = 0 THEN 'COMPLETED'
                    WHEN task.cancel_requested_at IS NOT NULL OR (
                        SELECT whole.stopping = 'cancel'
                        FROM holdfast_workflows AS whole
                        WHERE whole.workflow_id = task.workflow_id
                    ) THEN 'CANCELLED'
                    ELSE 'FAILED'
                END AS status
        ) AS final
        LEFT JOIN holdfast_tasks AS cause ON cause.id = :error_id::uuid
    ),
    updated_at = :now
WHERE id = :id::uuid AND status = 'WAITING' AND handed_over
    AND NOT EXISTS (
        SELECT FROM holdfast_scopes AS scope
        JOIN holdfast_workflows AS again ON again.workflow_id = scope.workflow_id
        WHERE scope.scope_id = :id::uuid AND again.resubmitting IS NOT NULL
    )
RETURNING id, status;
