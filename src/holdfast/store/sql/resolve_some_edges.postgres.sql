-- Parents ended otherwise than well: resolve some of their open edges, each once, as `resolve_edges` does.
-- What waits for them is skipped then, and no transaction skips any number of steps.
-- Differs from SQLite in how a batch is bound.
UPDATE holdfast_task_dependencies AS edge
SET resolved = true,
    satisfied = edge.on_status = 'always'
        OR (edge.on_status = 'success' AND edge.parent_id = ANY (:succeeded::uuid[]))
        OR (edge.on_status = 'failure' AND edge.parent_id = ANY (:failed::uuid[]))
FROM (
    SELECT parent_id, child_id
    FROM holdfast_task_dependencies
    WHERE parent_id = ANY (:parents::uuid[]) AND NOT resolved
        AND on_status IN ('success', 'failure', 'always')
    ORDER BY parent_id, child_id
    LIMIT :most::int
) AS chosen
WHERE edge.parent_id = chosen.parent_id AND edge.child_id = chosen.child_id AND NOT edge.resolved
RETURNING edge.parent_id, edge.child_id, edge.satisfied;
