-- delete, prune: an ended workflow whose steps are gone. Differs from PostgreSQL: one statement a table.
DELETE FROM holdfast_step_counts
WHERE scope_id IN (SELECT scope_id FROM holdfast_scopes WHERE workflow_id = :id);
DELETE FROM holdfast_scopes WHERE workflow_id = :id;
DELETE FROM holdfast_workflows
WHERE workflow_id = :id AND finished_at IS NOT NULL
RETURNING CAST(workflow_id AS BLOB) AS workflow_id;
