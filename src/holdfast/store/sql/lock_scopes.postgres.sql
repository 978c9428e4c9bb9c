-- Lock the scopes of a workflow, and of its parts: whoever closes one at the same time has ended, or
-- waits. Differs from SQLite, where the writer is alone.
SELECT scope_id
FROM holdfast_scopes
WHERE workflow_id = :id::uuid
    OR scope_id IN (SELECT workflow_id FROM holdfast_workflows WHERE parent_id = :id::uuid)
ORDER BY scope_id
FOR UPDATE;
