-- The resubmit of a workflow has come so far; nothing if another one has begun since.
-- Differs from SQLite in types.
UPDATE holdfast_workflows
SET resubmit_scope = :scope_id::uuid, resubmit_number = :number::int
WHERE workflow_id = :id::uuid AND resubmitting IS NOT NULL
    AND resubmitted_at = :since::timestamptz
    AND resubmit_scope IS NOT DISTINCT FROM :from_scope::uuid
    AND resubmit_number IS NOT DISTINCT FROM :from_number::int;
