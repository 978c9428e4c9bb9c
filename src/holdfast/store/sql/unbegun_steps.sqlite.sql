-- The steps of a workflow that have not begun.
-- Differs from PostgreSQL: the writer is alone, nothing to lock.
SELECT id
FROM holdfast_tasks
WHERE workflow_id = :workflow_id AND status IN ('PENDING', 'SCHEDULED', 'WAITING')
    AND NOT ifnull(handed_over, 0)
ORDER BY id;
