-- expire: WAITING, SCHEDULED, PENDING → EXPIRED once good_until has passed.
-- (A step that has handed over has begun: it only settles.)
-- A row of another status is met as well, and loses a time that it cannot have: such rows would
-- fill the batch forever. A careful one passes over rows that break the constraints of the table.
-- Differs from SQLite: rows being claimed or cancelled this instant are skipped.
UPDATE holdfast_tasks AS task
SET (
        status, ready, due_at, finished_at, result, error_code, failed_reason, unique_slot
    ) = (
        SELECT
            'EXPIRED', false, NULL, :now, :error, 'TASK_EXPIRED', :reason,
            CASE WHEN task.unique_until = 'deleted' THEN task.unique_slot END
        WHERE task.status IN ('WAITING', 'SCHEDULED', 'PENDING')
            AND task.handed_over IS NOT TRUE
        UNION ALL
        SELECT
            task.status, task.ready, task.due_at, task.finished_at, task.result, task.error_code,
            task.failed_reason, task.unique_slot
        WHERE task.status NOT IN ('WAITING', 'SCHEDULED', 'PENDING')
            OR task.handed_over IS TRUE
    ),
    expire_at = NULL,
    updated_at = :now
WHERE id = ANY (ARRAY(
        SELECT id FROM holdfast_tasks
        WHERE expire_at <= :now AND id <> ALL (:aside::uuid[])
            AND CASE
                WHEN :careful::boolean THEN status IN ('WAITING', 'SCHEDULED', 'PENDING') AND claim_token IS NULL
                    AND length(task_name) BETWEEN 1 AND 255
                    AND length(queue_name) BETWEEN 1 AND 100
                    AND isfinite(enqueued_at) AND isfinite(created_at)
                    AND coalesce(octet_length(task_options), 0) <= 10000000
                    AND coalesce(octet_length(trace_context), 0) <= 10000000
                ELSE true
            END
        ORDER BY expire_at
        LIMIT :batch::int
        FOR UPDATE SKIP LOCKED
    ))
RETURNING id, status, workflow_id;
