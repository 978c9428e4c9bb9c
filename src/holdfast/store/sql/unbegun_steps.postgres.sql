-- The steps of a workflow that have not begun, locked in the order of their ids.
-- Differs from SQLite, where the writer is alone.
SELECT id
FROM holdfast_tasks
WHERE workflow_id = :workflow_id::uuid AND status IN ('PENDING', 'SCHEDULED', 'WAITING')
    AND NOT coalesce(handed_over, false)
ORDER BY id
FOR UPDATE;
