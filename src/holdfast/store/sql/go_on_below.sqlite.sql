-- Steps were resubmitted: what was skipped below them has to follow, of those of these workflows, too, whose
-- resubmit has passed it by.
-- Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_workflows
SET resubmitting = ifnull(resubmitting, 'below'), resubmit_scope = NULL, resubmit_number = NULL,
    resubmit_fresh = resubmit_fresh OR :fresh,
    resubmitted_at = ifnull(CASE WHEN resubmitting IS NOT NULL THEN resubmitted_at END, :now)
WHERE workflow_id IN (SELECT value FROM json_each(:ids)) AND finished_at IS NULL;
