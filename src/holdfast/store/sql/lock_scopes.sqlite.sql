-- Nothing to lock: the writer is alone. Differs from PostgreSQL, which has other writers.
SELECT scope_id FROM holdfast_scopes WHERE workflow_id = :id AND 0;
