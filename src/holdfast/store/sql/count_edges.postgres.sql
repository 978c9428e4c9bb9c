-- Change how many edges these children have open, and how many of them they still need.
-- (A row that breaks the constraints of the table, or holds numbers that nobody counts to, is left
-- as it is: it would have the end of its parent refused.)
-- Differs from SQLite in how a batch is bound.
UPDATE holdfast_tasks
SET deps_open = deps_open + :open::int, deps_needed = deps_needed + :needed::int, updated_at = :now
WHERE id = ANY (:ids::uuid[])
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
    AND length(task_name) BETWEEN 1 AND 255 AND length(queue_name) BETWEEN 1 AND 100
    AND isfinite(enqueued_at) AND isfinite(created_at)
    AND coalesce(octet_length(task_options), 0) <= 10000000
    AND coalesce(octet_length(trace_context), 0) <= 10000000
    AND coalesce(run_at < '10000-01-01 00:00:00+00', true)
    AND coalesce(good_for_us, 0) BETWEEN 0 AND 253402300800000000
RETURNING id, status, deps_needed, deps_open;
