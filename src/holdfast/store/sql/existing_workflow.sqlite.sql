-- The workflow with this id, or else the one that holds this unique slot. Differs from PostgreSQL in types.
SELECT workflow_id, digest
FROM holdfast_workflows
WHERE workflow_id = :id OR unique_slot = :slot
ORDER BY workflow_id <> :id
LIMIT 1;
