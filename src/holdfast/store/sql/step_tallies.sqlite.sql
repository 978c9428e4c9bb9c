-- What is counted of these scopes, beside what there is. One statement, so one moment. Three kinds of rows:
-- 'scope': (body open, tail open, whether it should have ended if both are 0), of workflows that live
-- and are not being resubmitted; 'counted' and 'there', for each count row: (part, tail, open, bad).
-- Differs from PostgreSQL in types, and how a batch is bound.
SELECT
    'scope' AS kind, scope.scope_id, 0 AS part,
    (whole.workflow_id = scope.scope_id OR (adder.status = 'WAITING' AND adder.handed_over)) AS flag,
    scope.body_open AS a, scope.tail_open AS b
FROM holdfast_scopes AS scope
JOIN holdfast_workflows AS whole ON whole.workflow_id = scope.workflow_id
LEFT JOIN holdfast_tasks AS adder ON adder.id = scope.scope_id
WHERE scope.scope_id IN (SELECT value FROM json_each(:scopes)) AND whole.finished_at IS NULL AND whole.resubmitting IS NULL
UNION ALL
SELECT 'counted', scope_id, part, is_tail, open, bad
FROM holdfast_step_counts AS scope
WHERE scope.scope_id IN (SELECT value FROM json_each(:scopes))
UNION ALL
SELECT
    'there', scope.scope_id, scope.step_part, max(scope.step_tail IS NOT NULL),
    count(*) FILTER (
        WHERE scope.finished_at IS NULL OR scope.parked = 'pause'
    ),
    count(*) FILTER (
        WHERE scope.finished_at IS NOT NULL AND scope.parked IS NOT 'pause'
            AND scope.step_required AND scope.status <> 'COMPLETED'
            AND scope.error_code IS NOT 'UPSTREAM_SUCCEEDED'
    )
FROM holdfast_tasks AS scope
WHERE scope.scope_id IN (SELECT value FROM json_each(:scopes)) AND scope.step_part IS NOT NULL
GROUP BY scope.scope_id, scope.step_part;
