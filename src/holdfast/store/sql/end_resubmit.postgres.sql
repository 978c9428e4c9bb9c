-- The resubmit of a workflow is over: all its steps have been looked at. Nothing if another one has
-- begun since. Differs from SQLite in types.
UPDATE holdfast_workflows
SET resubmitting = NULL, resubmit_fresh = false, resubmit_scope = NULL, resubmit_number = NULL,
    resubmitted_at = NULL
WHERE workflow_id = :id::uuid AND resubmitting IS NOT NULL
    AND resubmitted_at = :since::timestamptz
    AND resubmit_scope IS NOT DISTINCT FROM :from_scope::uuid
    AND resubmit_number IS NOT DISTINCT FROM :from_number::int
RETURNING workflow_id;
