-- Workflows that need somebody: their deadline has passed, or they wind down.
-- Differs from SQLite in types.
(
    SELECT workflow_id, true AS is_late
    FROM holdfast_workflows
    WHERE deadline_at <= :now AND finished_at IS NULL AND stopping IS NULL
    ORDER BY deadline_at
    LIMIT :batch::int
)
UNION ALL
(
    SELECT workflow_id, deadline_at <= :now AND stopping = 'fail_fast'
    FROM holdfast_workflows
    WHERE finished_at IS NULL AND stopping IS NOT NULL
    LIMIT :batch::int
);
