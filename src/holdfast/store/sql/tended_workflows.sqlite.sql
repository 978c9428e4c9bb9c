-- Workflows that need somebody: their deadline has passed, or they wind down.
-- Differs from PostgreSQL in types.
SELECT * FROM (
    SELECT workflow_id, 1 AS is_late
    FROM holdfast_workflows
    WHERE deadline_at <= :now AND finished_at IS NULL AND stopping IS NULL
    ORDER BY deadline_at
    LIMIT :batch
)
UNION ALL
SELECT * FROM (
    SELECT workflow_id, ifnull(deadline_at <= :now AND stopping = 'fail_fast', 0)
    FROM holdfast_workflows
    WHERE finished_at IS NULL AND stopping IS NOT NULL
    LIMIT :batch
);
