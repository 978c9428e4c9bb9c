-- One page of the audit: which tasks are in flight without a lease row, and which wait for nothing:
-- their counts say that they could go on, or never will, or all that they still wait for is overdue (see
-- `overdue_edges`); or a pause has set them aside, and is over.
-- Nothing is locked: one snapshot shows a claim with its lease, or neither. (A row that is locked
-- here would be shown as it is now, beside leases as they were when the statement began.)
-- Differs from SQLite in the types of its parameters.
SELECT
    task.id AS key, task.id, task.status, task.claim_token,
    task.claim_token IS NOT NULL
        AND NOT EXISTS (SELECT FROM holdfast_leases WHERE token = task.claim_token) AS orphaned,
    (
        task.status = 'WAITING' AND NOT coalesce(task.handed_over, false)
        AND (
            task.deps_needed > task.deps_open
            OR NOT EXISTS (
                SELECT FROM holdfast_task_dependencies AS edge
                WHERE edge.child_id = task.id AND NOT edge.resolved
                    AND (task.deps_needed > 0 OR edge.parent_id = task.workflow_id)
            )
            OR EXISTS (
                SELECT FROM holdfast_task_dependencies AS edge
                JOIN holdfast_workflows AS whole ON whole.workflow_id = task.workflow_id
                LEFT JOIN holdfast_scopes AS scope ON scope.scope_id = task.scope_id
                LEFT JOIN holdfast_tasks AS parent ON parent.id = edge.parent_id
                WHERE edge.child_id = task.id
                    AND NOT edge.resolved AND edge.on_status IN ('success', 'failure', 'always')
                    AND whole.finished_at IS NULL AND whole.resubmitting IS NULL
                    AND CASE
                        WHEN edge.parent_id = task.workflow_id
                            THEN whole.status <> 'PAUSED' AND whole.stopping IS NULL AND NOT whole.held
                        WHEN edge.parent_id = scope.error_gate
                            THEN scope.body_open <= 0 OR scope.error_id IS NOT NULL
                        WHEN edge.parent_id = scope.ended_gate THEN scope.body_open <= 0
                        ELSE parent.id IS NULL OR (
                            parent.finished_at IS NOT NULL AND coalesce(parent.parked, '') NOT IN ('edges', 'pause')
                        )
                    END
            )
        )
    ) OR CASE
        WHEN task.parked = 'pause' THEN (
            SELECT whole.finished_at IS NULL
                AND whole.status <> 'PAUSED' AND whole.stopping IS NULL AND NOT whole.held
                AND whole.resubmitting IS NULL
            FROM holdfast_workflows AS whole
            WHERE whole.workflow_id = task.workflow_id
        )
        ELSE false
    END AS idle
FROM holdfast_tasks AS task
WHERE task.id > :after::uuid
ORDER BY task.id
LIMIT :page::int;
