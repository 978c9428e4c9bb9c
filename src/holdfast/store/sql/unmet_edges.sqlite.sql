-- How the parents ended that left these children without what they wait for.
-- Differs from PostgreSQL in how a batch is bound.
SELECT
    edge.child_id, parent.status, parent.error_code, edge.parent_id, parent.task_name, edge.on_status,
    scope.scope_id IS NOT NULL AS is_gate
FROM holdfast_task_dependencies AS edge
LEFT JOIN holdfast_tasks AS parent ON parent.id = edge.parent_id
LEFT JOIN holdfast_tasks AS child ON child.id = edge.child_id
LEFT JOIN holdfast_scopes AS scope
    ON scope.scope_id = child.scope_id AND edge.parent_id IN (scope.error_gate, scope.ended_gate)
WHERE edge.child_id IN (SELECT value FROM json_each(:ids)) AND edge.resolved AND NOT edge.satisfied;
