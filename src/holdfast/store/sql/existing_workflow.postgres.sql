-- The workflow with this id, or else the one that holds this unique slot. Differs from SQLite in types.
SELECT workflow_id, digest
FROM holdfast_workflows
WHERE workflow_id = :id::uuid OR unique_slot = :slot::text
ORDER BY workflow_id <> :id::uuid
LIMIT 1;
