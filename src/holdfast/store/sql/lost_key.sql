-- A live workflow whose unique key another one has.
SELECT workflow_name, unique_key
FROM holdfast_workflows
WHERE workflow_id = :id AND unique_key IS NOT NULL AND unique_slot IS NULL
    AND finished_at IS NULL;
