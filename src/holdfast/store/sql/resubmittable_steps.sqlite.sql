-- Steps of a workflow that may have to run again, in their order behind a cursor: those that were
-- skipped, and, unless only these are wanted, those that ended badly themselves up to then. (A step
-- that handed over ends with what it added, which may just have happened.)
-- Differs from PostgreSQL in types.
SELECT task.id, task.scope_id, task.step_number
FROM holdfast_tasks AS task
WHERE task.workflow_id = :id
    AND task.status IN ('FAILED', 'CANCELLED', 'EXPIRED', 'STALLED', 'DROPPED')
    AND task.scope_id IS NOT NULL AND task.step_number IS NOT NULL
    AND (
        (task.status = 'CANCELLED' AND task.error_code IN ('UPSTREAM_FAILED', 'UPSTREAM_CANCELLED', 'UPSTREAM_SUCCEEDED'))
        OR (:bad AND (task.handed_over IS TRUE OR task.finished_at <= :before))
    )
    AND (:scope_id IS NULL OR (task.scope_id, task.step_number) > (:scope_id, :number))
ORDER BY task.scope_id, task.step_number
LIMIT :batch;
