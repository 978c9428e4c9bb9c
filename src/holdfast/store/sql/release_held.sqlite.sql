-- A pause is over: resolve the edges from the workflow to its own steps (its id may be that of a step,
-- which others wait for). Differs from PostgreSQL in types.
UPDATE holdfast_task_dependencies AS pause
SET resolved = 1, satisfied = 1
WHERE pause.parent_id = :id AND NOT pause.resolved
    AND (SELECT step.workflow_id = :id FROM holdfast_tasks AS step WHERE step.id = pause.child_id)
RETURNING CAST(child_id AS BLOB) AS child_id;
