-- Steps that ended, and whose dependents have to be told now: those of a workflow whose pause is
-- over, or some that were left for later. Differs from SQLite: what another transaction holds is left to it.
UPDATE holdfast_tasks
SET parked = NULL
WHERE id = ANY (ARRAY(
        SELECT task.id
        FROM holdfast_tasks AS task
        WHERE task.parked IS NOT NULL
            AND CASE
                WHEN :workflow_id::uuid IS NULL THEN task.parked = 'edges'
                ELSE task.workflow_id = :workflow_id::uuid AND task.parked = 'pause'
                    AND NOT EXISTS (
                        SELECT FROM holdfast_workflows AS whole
                        WHERE whole.workflow_id = :workflow_id::uuid AND whole.status = 'PAUSED'
                    )
            END
        ORDER BY task.id
        LIMIT :batch::int
        FOR UPDATE SKIP LOCKED
    ))
RETURNING id, status;
