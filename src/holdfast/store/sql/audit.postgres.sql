-- One page of the audit: which tasks are in flight without a lease row, and which wait for nothing.
-- Nothing is locked: one snapshot shows a claim with its lease, or neither. (A row that is locked
-- here would be shown as it is now, beside leases as they were when the statement began.)
-- Differs from SQLite in the types of its parameters.
SELECT
    task.id AS key, task.id, task.status, task.claim_token,
    task.claim_token IS NOT NULL
        AND NOT EXISTS (SELECT FROM holdfast_leases WHERE token = task.claim_token) AS orphaned,
    task.status = 'WAITING' AND NOT coalesce(task.handed_over, false)
        AND (task.deps_needed <= 0 OR task.deps_needed > task.deps_open)
        AND NOT EXISTS (
            SELECT FROM holdfast_task_dependencies AS edge
            WHERE edge.child_id = task.id AND NOT edge.resolved
        ) AS idle
FROM holdfast_tasks AS task
WHERE task.id > :after::uuid
ORDER BY task.id
LIMIT :page::int;
