-- Whether the pause of a workflow is over, and it has not ended.
SELECT 1
FROM holdfast_workflows
WHERE workflow_id = :id AND status = 'RUNNING' AND finished_at IS NULL;
