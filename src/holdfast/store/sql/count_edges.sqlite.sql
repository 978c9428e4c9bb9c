-- Change how many edges these children have open, and how many of them they still need.
-- (A row that breaks the constraints of the table, or holds numbers that nobody counts to, is left
-- as it is: it would have the end of its parent refused.)
-- Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_tasks
SET deps_open = deps_open + :open, deps_needed = deps_needed + :needed, updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids))
    AND deps_open BETWEEN -1000000000 AND 1000000000
    AND deps_needed BETWEEN -1000000000 AND 1000000000
    AND status IN (
        'WAITING', 'SCHEDULED', 'PENDING', 'CLAIMED', 'RUNNING',
        'COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED', 'STALLED', 'DROPPED')
    AND (claim_token IS NOT NULL) = (status IN ('CLAIMED', 'RUNNING'))
    AND ready = (status = 'PENDING')
    AND (due_at IS NOT NULL) = (status = 'SCHEDULED')
    AND (finished_at IS NOT NULL) = (status IN (
        'COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED', 'STALLED', 'DROPPED'))
    AND (error_code IS NOT NULL) = (status IN (
        'FAILED', 'CANCELLED', 'EXPIRED', 'STALLED', 'DROPPED'))
    AND priority BETWEEN 1 AND 100
    AND length(id) = 36 AND id NOT GLOB '*[^0-9a-f-]*'
    AND length(task_name) BETWEEN 1 AND 255 AND length(queue_name) BETWEEN 1 AND 100
    AND attempt BETWEEN 0 AND 2147483647 AND retry_count BETWEEN 0 AND 2147483647
    AND crash_count BETWEEN 0 AND 2147483647 AND max_retries BETWEEN 0 AND 2147483647
    AND enqueued_at < 253402300800000000 AND created_at < 253402300800000000
    AND ifnull(length(task_options), 0) <= 10000000
    AND ifnull(length(trace_context), 0) <= 10000000
    AND ifnull(run_at, 0) < 253402300800000000
    AND ifnull(good_for_us, 0) BETWEEN 0 AND 253402300800000000
RETURNING CAST(id AS BLOB) AS id, CAST(status AS BLOB) AS status, deps_needed, deps_open;
