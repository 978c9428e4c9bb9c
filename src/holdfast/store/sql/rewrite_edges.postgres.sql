-- Edges to steps that are resubmitted, as they are to be: 0 open, 1 resolved in vain, 2 satisfied.
-- Differs from SQLite in how a batch is bound.
UPDATE holdfast_task_dependencies AS edge
SET resolved = given.state > 0, satisfied = CASE WHEN given.state > 0 THEN given.state = 2 END
FROM unnest(:parents::uuid[], :children::uuid[], :states::int[]) AS given (parent_id, child_id, state)
WHERE edge.parent_id = given.parent_id AND edge.child_id = given.child_id;
