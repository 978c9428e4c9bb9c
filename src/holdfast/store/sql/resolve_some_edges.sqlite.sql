-- Parents ended otherwise than well: resolve some of their open edges, each once, as `resolve_edges` does.
-- What waits for them is skipped then, and no transaction skips any number of steps.
-- Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_task_dependencies AS edge
SET resolved = 1,
    satisfied = edge.on_status = 'always'
        OR (edge.on_status = 'success' AND edge.parent_id IN (SELECT value FROM json_each(:succeeded)))
        OR (edge.on_status = 'failure' AND edge.parent_id IN (SELECT value FROM json_each(:failed)))
FROM (
    SELECT parent_id, child_id
    FROM holdfast_task_dependencies
    WHERE parent_id IN (SELECT value FROM json_each(:parents)) AND NOT resolved
        AND on_status IN ('success', 'failure', 'always')
    ORDER BY parent_id, child_id
    LIMIT :most
) AS chosen
WHERE edge.parent_id = chosen.parent_id AND edge.child_id = chosen.child_id AND NOT edge.resolved
RETURNING CAST(parent_id AS BLOB) AS parent_id, CAST(child_id AS BLOB) AS child_id, satisfied;
