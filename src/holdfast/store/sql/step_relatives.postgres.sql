-- Whose rows a resubmit of these steps looks at: their parents, and the steps that handed over to their
-- scopes, with the parents of those. Differs from SQLite in how a batch is bound.
WITH RECURSIVE step (id, scope_id) AS (
    SELECT id, scope_id FROM holdfast_tasks WHERE id = ANY (:ids::uuid[])
    UNION
    SELECT adder.id, adder.scope_id
    FROM step
    JOIN holdfast_tasks AS adder ON adder.id = step.scope_id
    WHERE adder.handed_over
)
SELECT id FROM step
UNION
SELECT edge.parent_id
FROM step
JOIN holdfast_task_dependencies AS edge ON edge.child_id = step.id;
