-- expire: WAITING, SCHEDULED, PENDING → EXPIRED once good_until has passed.
-- (A step that has handed over has begun: it only settles.)
-- A row of another status is met as well, and loses a time that it cannot have: such rows would
-- fill the batch forever. A careful one passes over rows that break the constraints of the table.
-- Differs from PostgreSQL: the writer is alone, nothing is skipped.
UPDATE holdfast_tasks
SET (
        status, ready, due_at, finished_at, result, error_code, failed_reason, unique_slot
    ) = (
        SELECT
            'EXPIRED', 0, NULL, :now, :error, 'TASK_EXPIRED', :reason,
            CASE WHEN unique_until = 'deleted' THEN unique_slot END
        WHERE holdfast_tasks.status IN ('WAITING', 'SCHEDULED', 'PENDING')
            AND holdfast_tasks.handed_over IS NOT TRUE
        UNION ALL
        SELECT status, ready, due_at, finished_at, result, error_code, failed_reason, unique_slot
        WHERE holdfast_tasks.status NOT IN ('WAITING', 'SCHEDULED', 'PENDING')
            OR holdfast_tasks.handed_over IS TRUE
    ),
    expire_at = NULL,
    updated_at = :now
WHERE seq IN (
        SELECT seq FROM holdfast_tasks
        WHERE expire_at <= :now AND seq NOT IN (SELECT value FROM json_each(:aside))
            AND iif(:careful, status IN ('WAITING', 'SCHEDULED', 'PENDING') AND claim_token IS NULL
                AND priority BETWEEN 1 AND 100
                AND length(id) = 36 AND id NOT GLOB '*[^0-9a-f-]*'
                AND length(task_name) BETWEEN 1 AND 255 AND length(queue_name) BETWEEN 1 AND 100
                AND attempt BETWEEN 0 AND 2147483647 AND retry_count BETWEEN 0 AND 2147483647
                AND crash_count BETWEEN 0 AND 2147483647 AND max_retries BETWEEN 0 AND 2147483647
                AND enqueued_at < 253402300800000000 AND created_at < 253402300800000000
                AND ifnull(length(task_options), 0) <= 10000000
                AND ifnull(length(trace_context), 0) <= 10000000, 1)
        ORDER BY expire_at
        LIMIT :batch
    )
RETURNING
    CAST(id AS BLOB) AS id, CAST(status AS BLOB) AS status,
    CAST(workflow_id AS BLOB) AS workflow_id;
