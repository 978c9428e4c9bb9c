-- Lock workflows, in the order of their ids. Differs from SQLite, where the writer is alone.
SELECT workflow_id
FROM holdfast_workflows
WHERE workflow_id = ANY (:ids::uuid[])
ORDER BY workflow_id
FOR UPDATE;
