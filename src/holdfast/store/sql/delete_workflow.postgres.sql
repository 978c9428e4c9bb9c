-- delete, prune: an ended workflow whose steps are gone. Differs from SQLite: one statement.
WITH counted AS (
    DELETE FROM holdfast_step_counts
    WHERE scope_id = ANY (ARRAY(
            SELECT scope_id FROM holdfast_scopes WHERE workflow_id = :id::uuid
        ))
), scoped AS (
    DELETE FROM holdfast_scopes WHERE workflow_id = :id::uuid
)
DELETE FROM holdfast_workflows
WHERE workflow_id = :id::uuid AND finished_at IS NOT NULL
RETURNING workflow_id;
