-- expire: WAITING, SCHEDULED, PENDING → EXPIRED once good_until has passed.
-- Differs from PostgreSQL: the writer is alone, nothing is skipped.
UPDATE holdfast_tasks
SET status = 'EXPIRED', ready = 0, due_at = NULL, expire_at = NULL, finished_at = :now,
    result = :error, error_code = 'TASK_EXPIRED', failed_reason = :reason, unique_slot = NULL,
    updated_at = :now
WHERE seq IN (
        SELECT seq FROM holdfast_tasks
        WHERE expire_at <= :now AND seq NOT IN (SELECT value FROM json_each(:aside))
        ORDER BY expire_at
        LIMIT :batch
    )
    AND status IN ('WAITING', 'SCHEDULED', 'PENDING')
RETURNING id, status, workflow_id;
