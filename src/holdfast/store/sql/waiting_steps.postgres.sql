-- The steps of a workflow that wait. Differs from SQLite in the parameter's type.
SELECT id FROM holdfast_tasks WHERE workflow_id = :workflow_id::uuid AND status = 'WAITING';
