-- Workflows that need somebody: their deadline has passed, or they wind down, or they were resumed or
-- resubmitted and not all of their steps know. Differs from PostgreSQL in types.
SELECT * FROM (
    SELECT workflow_id, 1 AS late, 0 AS stopping, 0 AS resumed, 0 AS resubmitting
    FROM holdfast_workflows
    WHERE deadline_at <= :now AND finished_at IS NULL AND stopping IS NULL
    ORDER BY deadline_at
    LIMIT :batch
)
UNION ALL
SELECT * FROM (
    SELECT
        workflow_id,
        CASE WHEN deadline_at <= :now AND stopping = 'fail_fast' THEN 1 ELSE 0 END,
        CASE WHEN stopping IS NOT NULL THEN 1 ELSE 0 END,
        CASE WHEN held AND status <> 'PAUSED' AND stopping IS NULL THEN 1 ELSE 0 END,
        CASE WHEN resubmitting IS NOT NULL THEN 1 ELSE 0 END
    FROM holdfast_workflows
    WHERE finished_at IS NULL AND (stopping IS NOT NULL OR held OR resubmitting IS NOT NULL)
        AND NOT (status = 'PAUSED' AND stopping IS NULL AND resubmitting IS NULL)
    LIMIT :batch
);
