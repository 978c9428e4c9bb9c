-- How far the resubmit of a workflow has come.
-- Differs from SQLite in types.
SELECT
    resubmitting, resubmit_fresh, resubmit_scope, resubmit_number, resubmitted_at,
    stopping IS NOT NULL AS stopping
FROM holdfast_workflows
WHERE workflow_id = :id::uuid AND resubmitting IS NOT NULL;
