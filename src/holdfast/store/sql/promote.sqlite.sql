-- promote: SCHEDULED → PENDING when its time has come. Position in the queue is kept.
-- Differs from PostgreSQL: the writer is alone, nothing is skipped.
UPDATE holdfast_tasks
SET status = 'PENDING', ready = 1, due_at = NULL, updated_at = :now
WHERE seq IN (
        SELECT seq FROM holdfast_tasks
        WHERE due_at <= :now AND seq NOT IN (SELECT value FROM json_each(:aside))
        ORDER BY due_at
        LIMIT :batch
    )
    AND status = 'SCHEDULED'
RETURNING id, queue_name;
