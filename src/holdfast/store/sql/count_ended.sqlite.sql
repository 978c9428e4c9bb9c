-- Count tasks that this transaction has ended, by the status they ended in. A name that is too long
-- for a counter, which only a hand in the table has written, is not counted.
-- Differs from PostgreSQL in how a batch is bound, and in whose row it is: the writer is alone here,
-- so all count in one.
INSERT INTO holdfast_stats AS stats (
    minute, worker_id, queue_name, task_name, completed, failed, cancelled, stalled, expired, dropped
)
SELECT
    :now / 60000000 * 60000000,
    '',
    queue_name,
    task_name,
    count(*) FILTER (WHERE status = 'COMPLETED'),
    count(*) FILTER (WHERE status = 'FAILED'),
    count(*) FILTER (WHERE status = 'CANCELLED'),
    count(*) FILTER (WHERE status = 'STALLED'),
    count(*) FILTER (WHERE status = 'EXPIRED'),
    count(*) FILTER (WHERE status = 'DROPPED')
FROM holdfast_tasks
WHERE id IN (SELECT value FROM json_each(:ids))
    AND status IN ('COMPLETED', 'FAILED', 'CANCELLED', 'STALLED', 'EXPIRED', 'DROPPED')
    AND length(queue_name) <= 100 AND length(task_name) <= 255
GROUP BY queue_name, task_name
ON CONFLICT (minute, worker_id, queue_name, task_name) DO UPDATE
SET completed = stats.completed + excluded.completed,
    failed = stats.failed + excluded.failed,
    cancelled = stats.cancelled + excluded.cancelled,
    stalled = stats.stalled + excluded.stalled,
    expired = stats.expired + excluded.expired,
    dropped = stats.dropped + excluded.dropped;
