-- promote: SCHEDULED → PENDING when its time has come. Position in the queue is kept.
-- Differs from SQLite: rows another worker is promoting are skipped, and the hint names the queues.
WITH promoted AS (
    UPDATE holdfast_tasks
    SET status = 'PENDING', ready = true, due_at = NULL, updated_at = :now
    WHERE id = ANY (ARRAY(
            SELECT id FROM holdfast_tasks
            WHERE due_at <= :now AND id <> ALL (:aside::uuid[])
            ORDER BY due_at
            LIMIT :batch::int
            FOR UPDATE SKIP LOCKED
        ))
        AND status = 'SCHEDULED'
    RETURNING id, queue_name
)
SELECT id, queue_name FROM promoted;
