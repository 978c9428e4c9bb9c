-- Steps that ended, and whose dependents have to be told now: those of a workflow whose pause is
-- over, or some that were left for later. Differs from PostgreSQL: the writer is alone.
UPDATE holdfast_tasks
SET parked = NULL
WHERE seq IN (
        SELECT task.seq
        FROM holdfast_tasks AS task
        WHERE task.parked IS NOT NULL
            AND CASE
                WHEN :workflow_id IS NULL THEN task.parked = 'edges'
                ELSE task.workflow_id = :workflow_id AND task.parked = 'pause'
                    AND NOT EXISTS (
                        SELECT 1 FROM holdfast_workflows AS whole
                        WHERE whole.workflow_id = :workflow_id AND whole.status = 'PAUSED'
                    )
            END
        ORDER BY task.id
        LIMIT :batch
    )
RETURNING CAST(id AS BLOB) AS id, CAST(status AS BLOB) AS status;
