-- Steps of an ended workflow are resubmitted: it runs again, and its deadline counts anew. One that has
-- completed stays. Differs from PostgreSQL in types.
UPDATE holdfast_workflows
SET status = 'RUNNING', finished_at = NULL, stopping = NULL, stopped_by = NULL, stop_all = 0,
    deadline_at = :now + deadline_us, updated_at = :now,
    unique_slot = CASE
        WHEN NOT EXISTS (
            SELECT 1 FROM holdfast_workflows AS holder
            WHERE holder.unique_slot = holdfast_workflows.unique_key
        ) THEN unique_key
    END
WHERE workflow_id = :id AND finished_at IS NOT NULL
RETURNING CAST(workflow_id AS BLOB) AS workflow_id;
