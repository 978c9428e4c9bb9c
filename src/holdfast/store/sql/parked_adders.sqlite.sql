-- A step that has handed over, of which not all that it added is cancelled, or, of a workflow, is
-- resubmitted. Differs from PostgreSQL in types.
SELECT id, parked
FROM holdfast_tasks
WHERE parked IS NOT NULL AND handed_over
    AND CASE
        WHEN :workflow_id IS NULL THEN parked = 'cancel'
        ELSE workflow_id = :workflow_id AND parked LIKE 'again %'
    END
ORDER BY id
LIMIT 1;
