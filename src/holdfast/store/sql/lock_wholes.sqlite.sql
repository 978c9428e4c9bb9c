-- Nothing to lock: the writer is alone. Differs from PostgreSQL, which has other writers.
SELECT workflow_id
FROM holdfast_workflows
WHERE workflow_id IN (SELECT value FROM json_each(:ids)) AND 0;
