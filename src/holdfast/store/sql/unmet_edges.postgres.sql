-- How the parents ended that left these children without what they wait for.
-- Differs from SQLite in how a batch is bound.
SELECT
    edge.child_id, parent.status, parent.error_code, edge.parent_id, parent.task_name, edge.on_status
FROM holdfast_task_dependencies AS edge
LEFT JOIN holdfast_tasks AS parent ON parent.id = edge.parent_id
WHERE edge.child_id = ANY (:ids::uuid[]) AND edge.resolved AND NOT edge.satisfied;
