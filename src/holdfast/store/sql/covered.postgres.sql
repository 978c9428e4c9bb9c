-- The tasks that still carry the tokens of these leases. Differs from SQLite: arrays, and the tasks
-- are reached by their key from inside a LATERAL, whatever the planner believes about the table.
SELECT lease.token, task.id AS key
FROM holdfast_leases AS lease
CROSS JOIN LATERAL (
    SELECT held.id
    FROM holdfast_tasks AS held
    WHERE held.id = ANY (lease.task_ids) AND held.claim_token = lease.token
    ORDER BY held.id
) AS task
WHERE lease.token = ANY (:tokens::uuid[]);
