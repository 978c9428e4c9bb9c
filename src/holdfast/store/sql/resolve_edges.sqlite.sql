-- A parent ended: resolve its open edges, each once. `satisfied` says whether the ending is the one
-- the edge waits for. Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_task_dependencies
SET resolved = 1,
    satisfied = on_status = 'always'
        OR (on_status = 'success' AND parent_id IN (SELECT value FROM json_each(:succeeded)))
        OR (on_status = 'failure' AND parent_id IN (SELECT value FROM json_each(:failed)))
WHERE parent_id IN (SELECT value FROM json_each(:parents)) AND NOT resolved
RETURNING parent_id, child_id, satisfied;
