-- The workflows that are parts of this one and have not ended. Differs from SQLite in types.
SELECT workflow_id FROM holdfast_workflows WHERE parent_id = :id::uuid AND finished_at IS NULL;
