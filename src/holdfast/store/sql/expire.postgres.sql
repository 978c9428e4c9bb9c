-- expire: WAITING, SCHEDULED, PENDING → EXPIRED once good_until has passed.
-- Differs from SQLite: rows being claimed or cancelled this instant are skipped.
UPDATE holdfast_tasks
SET status = 'EXPIRED', ready = false, due_at = NULL, expire_at = NULL, finished_at = :now,
    result = :error, error_code = 'TASK_EXPIRED', failed_reason = :reason, unique_slot = NULL,
    updated_at = :now
WHERE id = ANY (ARRAY(
        SELECT id FROM holdfast_tasks
        WHERE expire_at <= :now AND id <> ALL (:aside::uuid[])
        ORDER BY expire_at
        LIMIT :batch::int
        FOR UPDATE SKIP LOCKED
    ))
    AND status IN ('WAITING', 'SCHEDULED', 'PENDING')
RETURNING id, status, workflow_id;
