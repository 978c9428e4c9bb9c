-- The scopes of a workflow of which nothing is open, and that have not ended for all that; and those of
-- its parts that have ended, whose steps were made to wait for them again.
-- Differs from SQLite in types.
SELECT scope.scope_id, scope.workflow_id, scope.body_open, scope.tail_open, scope.error_id,
    scope.error_gate, scope.ended_gate
FROM holdfast_scopes AS scope
LEFT JOIN holdfast_tasks AS adder ON adder.id = scope.scope_id
LEFT JOIN holdfast_workflows AS whole ON whole.workflow_id = scope.scope_id
WHERE (
        scope.workflow_id = :id::uuid
        OR scope.scope_id IN (
            SELECT part.workflow_id
            FROM holdfast_workflows AS part
            WHERE part.parent_id = :id::uuid AND part.finished_at IS NOT NULL
        )
    )
    AND scope.body_open <= 0 AND scope.tail_open <= 0
    AND (
        (whole.workflow_id IS NOT NULL AND whole.finished_at IS NULL)
        OR (adder.status = 'WAITING' AND adder.handed_over)
    )
ORDER BY scope.scope_id;
