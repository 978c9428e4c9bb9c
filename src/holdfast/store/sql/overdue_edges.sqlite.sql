-- What these steps wait for although nobody will tell them: a pause that is over and has released all that
-- it held, a gate that is open, a step that has ended and told the others, or one that is gone. (Of
-- workflows that live and are not being resubmitted.) Differs from PostgreSQL in how a batch is bound.
SELECT
    edge.child_id, edge.parent_id, parent.status,
    edge.parent_id = child.workflow_id AS is_pause,
    CASE
        WHEN edge.parent_id = scope.ended_gate THEN 'COMPLETED'
        WHEN edge.parent_id = scope.error_gate
            THEN CASE WHEN scope.error_id IS NULL THEN 'CANCELLED' ELSE 'COMPLETED' END
    END AS gate
FROM holdfast_task_dependencies AS edge
JOIN holdfast_tasks AS child ON child.id = edge.child_id
JOIN holdfast_workflows AS whole ON whole.workflow_id = child.workflow_id
LEFT JOIN holdfast_scopes AS scope ON scope.scope_id = child.scope_id
LEFT JOIN holdfast_tasks AS parent ON parent.id = edge.parent_id
WHERE edge.child_id IN (SELECT value FROM json_each(:children))
    AND NOT edge.resolved AND edge.on_status IN ('success', 'failure', 'always')
    AND child.status = 'WAITING'
    AND whole.finished_at IS NULL AND whole.resubmitting IS NULL
    AND CASE
        WHEN edge.parent_id = child.workflow_id
            THEN whole.status <> 'PAUSED' AND whole.stopping IS NULL AND NOT whole.held
        WHEN edge.parent_id = scope.error_gate
            THEN scope.body_open <= 0 OR scope.error_id IS NOT NULL
        WHEN edge.parent_id = scope.ended_gate THEN scope.body_open <= 0
        ELSE parent.id IS NULL OR (
            parent.finished_at IS NOT NULL AND coalesce(parent.parked, '') NOT IN ('edges', 'pause')
        )
    END;
