-- promote: SCHEDULED → PENDING when its time has come. Position in the queue is kept.
-- A row of another status is met as well, and loses a time that it cannot have: such rows would
-- fill the batch forever. A careful one passes over rows that break the constraints of the table.
-- Differs from SQLite: rows another worker is promoting are skipped, and the hint names the queues.
WITH promoted AS (
    UPDATE holdfast_tasks
    SET status = CASE WHEN status = 'SCHEDULED' THEN 'PENDING' ELSE status END,
        ready = ready OR status = 'SCHEDULED', due_at = NULL, updated_at = :now
    WHERE id = ANY (ARRAY(
            SELECT id FROM holdfast_tasks
            WHERE due_at <= :now AND id <> ALL (:aside::uuid[])
                AND CASE
                    WHEN :careful::boolean THEN status = 'SCHEDULED' AND claim_token IS NULL
                        AND finished_at IS NULL AND error_code IS NULL
                        AND length(task_name) BETWEEN 1 AND 255
                        AND length(queue_name) BETWEEN 1 AND 100
                        AND isfinite(enqueued_at) AND isfinite(created_at)
                        AND coalesce(octet_length(task_options), 0) <= 10000000
                        AND coalesce(octet_length(trace_context), 0) <= 10000000
                    ELSE true
                END
            ORDER BY due_at
            LIMIT :batch::int
            FOR UPDATE SKIP LOCKED
        ))
    RETURNING id, queue_name, status
)
SELECT id, queue_name, status FROM promoted;
