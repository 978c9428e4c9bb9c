-- How steps of several scopes stand, with their values. (OFFSET 0: each is reached by the index, one by
-- one; joined as they are, all tasks could be read.) Differs from SQLite in how a batch is bound.
SELECT
    step.scope_id, step.id, step.step_number, step.status, step.result, step.handed_over,
    step.step_name
FROM unnest(:scopes::uuid[], :numbers::int[]) AS wanted (scope_id, number)
CROSS JOIN LATERAL (
    SELECT *
    FROM holdfast_tasks AS task
    WHERE task.scope_id = wanted.scope_id AND task.step_number = wanted.number
    OFFSET 0
) AS step
ORDER BY step.scope_id, step.step_number;
