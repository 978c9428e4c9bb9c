-- How many of the newest workflows that are no parts of others are in each status.
SELECT status, count(*) AS n
FROM (
    SELECT status
    FROM holdfast_workflows
    WHERE parent_id IS NULL
    ORDER BY created_at DESC
    LIMIT :cap
) AS newest
GROUP BY status;
