-- The steps of a workflow that wait. Differs from PostgreSQL in the parameter's type.
SELECT id FROM holdfast_tasks WHERE workflow_id = :workflow_id AND status = 'WAITING';
