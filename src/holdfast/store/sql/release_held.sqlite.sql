-- A pause is over: resolve its edges to these steps. Differs from PostgreSQL in types.
UPDATE holdfast_task_dependencies AS pause
SET resolved = 1, satisfied = 1
WHERE pause.parent_id = :id AND pause.child_id IN (SELECT value FROM json_each(:ids))
    AND NOT pause.resolved
RETURNING CAST(child_id AS BLOB) AS child_id;
