-- Workflows that need somebody: their deadline has passed, or they wind down, or are paused, or were
-- resumed or resubmitted and not all of their steps know. The late ones, and a page of the others.
-- Differs from SQLite in types.
(
    SELECT workflow_id, updated_at, 1 AS late, 0 AS stopping, 0 AS resumed, 0 AS resubmitting, 0 AS paused
    FROM holdfast_workflows
    WHERE deadline_at <= :now AND finished_at IS NULL AND stopping IS NULL
    ORDER BY deadline_at
    LIMIT :batch::int
)
UNION ALL
(
    SELECT
        workflow_id,
        updated_at,
        CASE WHEN deadline_at <= :now AND stopping = 'fail_fast' THEN 1 ELSE 0 END,
        CASE WHEN stopping IS NOT NULL THEN 1 ELSE 0 END,
        CASE WHEN held AND status <> 'PAUSED' AND stopping IS NULL THEN 1 ELSE 0 END,
        CASE WHEN resubmitting IS NOT NULL THEN 1 ELSE 0 END,
        CASE WHEN status = 'PAUSED' THEN 1 ELSE 0 END
    FROM holdfast_workflows
    WHERE finished_at IS NULL AND (stopping IS NOT NULL OR held OR resubmitting IS NOT NULL)
        AND workflow_id > :after::uuid
    ORDER BY workflow_id
    LIMIT :batch::int
);
