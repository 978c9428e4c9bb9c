-- Steps whose edges are all resolved although they count some as open: none is. If all were satisfied, nothing
-- more is needed. Differs from SQLite in how a batch is bound.
UPDATE holdfast_tasks
SET deps_open = 0,
    deps_needed = CASE
        WHEN EXISTS (
            SELECT FROM holdfast_task_dependencies AS edge
            WHERE edge.child_id = holdfast_tasks.id AND edge.satisfied IS NOT TRUE
        ) THEN deps_needed
        ELSE 0
    END
WHERE id = ANY (:ids::uuid[]) AND status = 'WAITING' AND deps_open > 0 AND handed_over IS NOT TRUE
    AND NOT EXISTS (
        SELECT FROM holdfast_task_dependencies AS edge
        WHERE edge.child_id = holdfast_tasks.id AND NOT edge.resolved
    );
