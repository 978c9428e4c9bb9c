-- Those of these tasks that are steps and ended without a value, and the steps that had handed over to
-- their scopes, and to the scopes of those: their end was made of them.
-- Differs from PostgreSQL in how a batch is bound.
WITH RECURSIVE step (id, scope_id) AS (
    SELECT id, scope_id
    FROM holdfast_tasks
    WHERE id IN (SELECT value FROM json_each(:ids)) AND scope_id IS NOT NULL
    UNION
    SELECT adder.id, adder.scope_id
    FROM step
    JOIN holdfast_tasks AS adder ON adder.id = step.scope_id
    WHERE adder.handed_over AND adder.scope_id IS NOT NULL
)
SELECT
    task.id, task.scope_id, task.step_number, task.workflow_id, task.status, task.deps_needed,
    task.deps_open, task.handed_over
FROM holdfast_tasks AS task
WHERE task.id IN (SELECT id FROM step)
    AND task.status IN ('FAILED', 'CANCELLED', 'EXPIRED', 'STALLED', 'DROPPED')
ORDER BY task.scope_id, task.step_number;
