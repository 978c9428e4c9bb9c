-- How far the resubmit of a workflow has come.
-- Differs from PostgreSQL in types.
SELECT
    resubmitting, resubmit_fresh, resubmit_scope, resubmit_number, resubmitted_at,
    stopping IS NOT NULL AS stopping
FROM holdfast_workflows
WHERE workflow_id = :id AND resubmitting IS NOT NULL;
