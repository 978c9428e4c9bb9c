-- The resubmit of a workflow is over: all its steps have been looked at. Nothing if another one has
-- begun since. Differs from PostgreSQL in types.
UPDATE holdfast_workflows
SET resubmitting = NULL, resubmit_fresh = 0, resubmit_scope = NULL, resubmit_number = NULL,
    resubmitted_at = NULL
WHERE workflow_id = :id AND resubmitting IS NOT NULL AND resubmitted_at = :since
    AND resubmit_scope IS :from_scope AND resubmit_number IS :from_number
RETURNING CAST(workflow_id AS BLOB) AS workflow_id;
