-- One page of the audit: which tasks are in flight without a lease row, and which wait for nothing.
-- Differs from PostgreSQL in the key of a task.
SELECT
    task.seq AS key, task.id, task.status, task.claim_token,
    task.claim_token IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM holdfast_leases WHERE token = task.claim_token) AS orphaned,
    task.status = 'WAITING' AND NOT ifnull(task.handed_over, 0)
        AND (task.deps_needed <= 0 OR task.deps_needed > task.deps_open)
        AND NOT EXISTS (
            SELECT 1 FROM holdfast_task_dependencies AS edge
            WHERE edge.child_id = task.id AND NOT edge.resolved
        ) AS idle
FROM holdfast_tasks AS task
WHERE task.id > :after
ORDER BY task.id
LIMIT :page;
