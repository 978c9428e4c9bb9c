-- A parent ended: resolve its open edges, each once. `satisfied` says whether the ending is the one
-- the edge waits for; one that waits for nothing known stays as it is. Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_task_dependencies
SET resolved = 1,
    satisfied = on_status = 'always'
        OR (on_status = 'success' AND parent_id IN (SELECT value FROM json_each(:succeeded)))
        OR (on_status = 'failure' AND parent_id IN (SELECT value FROM json_each(:failed)))
WHERE parent_id IN (SELECT value FROM json_each(:parents)) AND NOT resolved
    AND on_status IN ('success', 'failure', 'always')
RETURNING CAST(parent_id AS BLOB) AS parent_id, CAST(child_id AS BLOB) AS child_id, satisfied;
