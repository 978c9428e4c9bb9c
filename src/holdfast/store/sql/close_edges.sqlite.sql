-- Steps whose edges are all resolved although they count some as open: none is. If all were satisfied, nothing
-- more is needed. Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_tasks
SET deps_open = 0,
    deps_needed = CASE
        WHEN EXISTS (
            SELECT 1 FROM holdfast_task_dependencies AS edge
            WHERE edge.child_id = holdfast_tasks.id AND edge.satisfied IS NOT 1
        ) THEN deps_needed
        ELSE 0
    END
WHERE id IN (SELECT value FROM json_each(:ids)) AND status = 'WAITING' AND deps_open > 0 AND handed_over IS NOT 1
    AND NOT EXISTS (
        SELECT 1 FROM holdfast_task_dependencies AS edge
        WHERE edge.child_id = holdfast_tasks.id AND NOT edge.resolved
    );
