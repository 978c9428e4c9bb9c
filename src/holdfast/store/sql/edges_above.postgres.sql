-- What these steps wait for: each edge with how its parent stands. `kind`: a gate of their scope that
-- opens at the first failure, or at the end of the body; the pause of their workflow; another task.
-- Differs from SQLite in how a batch is bound.
SELECT
    edge.child_id, edge.parent_id, edge.on_status, edge.resolved, edge.satisfied,
    CASE
        WHEN edge.parent_id = child.workflow_id THEN 'pause'
        WHEN edge.parent_id = scope.error_gate THEN 'error gate'
        WHEN edge.parent_id = scope.ended_gate THEN 'end gate'
        ELSE 'task'
    END AS kind,
    parent.status
FROM holdfast_task_dependencies AS edge
JOIN holdfast_tasks AS child ON child.id = edge.child_id
LEFT JOIN holdfast_tasks AS parent ON parent.id = edge.parent_id
LEFT JOIN holdfast_scopes AS scope ON scope.scope_id = child.scope_id
WHERE edge.child_id = ANY (:children::uuid[]);
