-- A pause is over, and something is still held by it, or set aside: workers release it.
-- Differs from SQLite in how a batch is bound.
UPDATE holdfast_workflows
SET held = true
WHERE workflow_id IN (SELECT task.workflow_id FROM holdfast_tasks AS task WHERE task.id = ANY (:ids::uuid[]))
    AND finished_at IS NULL AND status <> 'PAUSED' AND stopping IS NULL AND NOT held;
