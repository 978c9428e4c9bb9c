-- The resubmit of a workflow has come so far; nothing if another one has begun since.
-- Differs from PostgreSQL in types.
UPDATE holdfast_workflows
SET resubmit_scope = :scope_id, resubmit_number = :number
WHERE workflow_id = :id AND resubmitting IS NOT NULL AND resubmitted_at = :since
    AND resubmit_scope IS :from_scope AND resubmit_number IS :from_number;
