-- How steps of several scopes stand, with their values.
-- Differs from PostgreSQL in how a batch is bound (see `count_steps`).
WITH scopes AS MATERIALIZED (
    SELECT key, value FROM json_each(:scopes)
), numbers AS MATERIALIZED (
    SELECT key, value FROM json_each(:numbers)
), wanted AS MATERIALIZED (
    SELECT scopes.value AS scope_id, numbers.value AS number
    FROM scopes
    JOIN numbers ON numbers.key = scopes.key
)
SELECT
    task.scope_id, task.id, task.step_number, task.status, task.result, task.handed_over,
    task.step_name
FROM wanted
CROSS JOIN holdfast_tasks AS task
WHERE task.scope_id = wanted.scope_id AND task.step_number = wanted.number
ORDER BY task.scope_id, task.step_number;
