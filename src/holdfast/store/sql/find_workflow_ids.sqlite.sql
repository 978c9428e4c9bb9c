-- The ids of workflows between :first and :last that end with :ending, the greatest first; "" is any end. At
-- most :scan of them are examined. Differs from PostgreSQL, whose ids are no text.
SELECT workflow_id
FROM (
    SELECT workflow_id FROM holdfast_workflows
    WHERE workflow_id BETWEEN :first AND :last
    ORDER BY workflow_id DESC LIMIT :scan
)
WHERE substr(workflow_id, 37 - length(:ending)) = :ending
LIMIT :limit;
