-- promote, by an operator: SCHEDULED → PENDING at once.
-- Differs from SQLite in how a batch is bound.
UPDATE holdfast_tasks
SET status = 'PENDING', ready = true, due_at = NULL, updated_at = :now
WHERE id = ANY (:ids::uuid[]) AND status = 'SCHEDULED'
RETURNING id, queue_name;
