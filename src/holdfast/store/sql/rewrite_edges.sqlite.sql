-- Edges to steps that are resubmitted, as they are to be: 0 open, 1 resolved in vain, 2 satisfied.
-- Differs from PostgreSQL in how a batch is bound (see `count_steps`).
WITH parents AS MATERIALIZED (
    SELECT key, value FROM json_each(:parents)
), children AS MATERIALIZED (
    SELECT key, value FROM json_each(:children)
), states AS MATERIALIZED (
    SELECT key, value FROM json_each(:states)
), given AS MATERIALIZED (
    SELECT parents.value AS parent_id, children.value AS child_id, states.value AS state
    FROM parents
    JOIN children ON children.key = parents.key
    JOIN states ON states.key = parents.key
)
UPDATE holdfast_task_dependencies AS edge
SET resolved = given.state > 0, satisfied = CASE WHEN given.state > 0 THEN given.state = 2 END
FROM given
WHERE edge.parent_id = given.parent_id AND edge.child_id = given.child_id;
