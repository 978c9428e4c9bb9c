-- The ids of workflows between :first and :last that end with :ending, the greatest first; "" is any end. At
-- most :scan of them are examined. Differs from SQLite, whose ids are text.
SELECT workflow_id
FROM (
    SELECT workflow_id FROM holdfast_workflows
    WHERE workflow_id BETWEEN :first::uuid AND :last::uuid
    ORDER BY workflow_id DESC LIMIT :scan::int
) AS near
WHERE right(workflow_id::text, length(:ending::text)) = :ending::text
LIMIT :limit::int;
