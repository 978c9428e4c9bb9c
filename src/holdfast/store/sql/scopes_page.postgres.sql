-- One page of the scopes: whether the workflow of each lives, and how many count rows it has.
-- Differs from SQLite in types.
SELECT
    scope.scope_id,
    EXISTS (
        SELECT FROM holdfast_workflows AS whole
        WHERE whole.workflow_id = scope.workflow_id AND whole.finished_at IS NULL
    ),
    (SELECT count(*) FROM holdfast_step_counts AS counted WHERE counted.scope_id = scope.scope_id)
FROM holdfast_scopes AS scope
WHERE scope.scope_id > :after::uuid
ORDER BY scope.scope_id
LIMIT :page::int;
