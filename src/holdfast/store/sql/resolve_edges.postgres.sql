-- A parent ended: resolve its open edges, each once. `satisfied` says whether the ending is the one
-- the edge waits for; one that waits for nothing known stays as it is. Differs from SQLite in how a batch is bound.
UPDATE holdfast_task_dependencies
SET resolved = true,
    satisfied = on_status = 'always'
        OR (on_status = 'success' AND parent_id = ANY (:succeeded::uuid[]))
        OR (on_status = 'failure' AND parent_id = ANY (:failed::uuid[]))
WHERE parent_id = ANY (:parents::uuid[]) AND NOT resolved
    AND on_status IN ('success', 'failure', 'always')
RETURNING parent_id, child_id, satisfied;
