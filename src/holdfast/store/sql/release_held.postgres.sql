-- A pause is over: resolve the edges from the workflow to its own steps (its id may be that of a step,
-- which others wait for). Differs from SQLite in types.
UPDATE holdfast_task_dependencies AS pause
SET resolved = true, satisfied = true
WHERE pause.parent_id = :id::uuid AND NOT pause.resolved
    AND (
        SELECT step.workflow_id = :id::uuid FROM holdfast_tasks AS step WHERE step.id = pause.child_id
    )
RETURNING child_id;
