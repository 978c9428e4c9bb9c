-- Nothing to lock: the writer is alone. Differs from PostgreSQL, which has other writers.
SELECT workflow_id FROM holdfast_workflows WHERE workflow_id = :id AND 0;
