-- Steps of an ended workflow are resubmitted: it runs again, and its deadline counts anew. One that has
-- completed stays. Differs from SQLite in types.
UPDATE holdfast_workflows
SET status = 'RUNNING', finished_at = NULL, stopping = NULL, stopped_by = NULL, stop_all = false,
    deadline_at = :now + deadline_us * interval '1 microsecond', updated_at = :now,
    unique_slot = CASE
        WHEN NOT EXISTS (
            SELECT FROM holdfast_workflows AS holder
            WHERE holder.unique_slot = holdfast_workflows.unique_key
        ) THEN unique_key
    END
WHERE workflow_id = :id::uuid AND finished_at IS NOT NULL
RETURNING workflow_id;
