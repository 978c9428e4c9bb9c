-- Which of these steps must not run again: their workflow, or one that it is a part of, has completed or
-- winds down; or a step that had handed over to them has completed without them; or what they had handed
-- over to has been deleted.
-- Differs from PostgreSQL in how a batch is bound.
WITH RECURSIVE below (id, scope_id, workflow_id, is_closed) AS (
    SELECT
        id, scope_id, workflow_id,
        ifnull(handed_over, 0) AND NOT EXISTS (
            SELECT 1 FROM holdfast_scopes AS left_by WHERE left_by.scope_id = holdfast_tasks.id
        )
    FROM holdfast_tasks
    WHERE id IN (SELECT value FROM json_each(:ids))
    UNION
    SELECT below.id, adder.scope_id, adder.workflow_id, adder.status = 'COMPLETED'
    FROM below
    JOIN holdfast_tasks AS adder ON adder.id = below.scope_id
    WHERE adder.handed_over
)
SELECT DISTINCT below.id
FROM below
LEFT JOIN holdfast_workflows AS whole ON whole.workflow_id = below.workflow_id
WHERE below.is_closed OR whole.status = 'COMPLETED'
    OR (whole.stopping IS NOT NULL AND whole.finished_at IS NULL);
