-- The workflows that are parts of this one and have not ended. Differs from PostgreSQL in types.
SELECT workflow_id FROM holdfast_workflows WHERE parent_id = :id AND finished_at IS NULL;
