-- promote, by an operator: SCHEDULED → PENDING at once.
-- Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_tasks
SET status = 'PENDING', ready = 1, due_at = NULL, updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids)) AND status = 'SCHEDULED'
RETURNING CAST(id AS BLOB) AS id, CAST(queue_name AS BLOB) AS queue_name;
