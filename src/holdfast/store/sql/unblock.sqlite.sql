-- unblock: WAITING → PENDING or SCHEDULED: enough of its parents ended as it needs.
-- Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_tasks
SET status = CASE WHEN run_at > :now THEN 'SCHEDULED' ELSE 'PENDING' END,
    ready = ifnull(run_at <= :now, 1),
    due_at = CASE WHEN run_at > :now THEN run_at END,
    enqueued_at = CASE WHEN run_at > :now THEN run_at ELSE :now END,
    good_until = ifnull(good_until, :now + good_for_us),
    expire_at = ifnull(good_until, :now + good_for_us),
    updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids)) AND status = 'WAITING' AND deps_needed <= 0
RETURNING id, status, queue_name;
