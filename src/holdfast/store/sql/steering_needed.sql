-- Whether any workflow needs somebody, or any step was left for later. Each part is the condition of
-- an index.
SELECT 1
WHERE EXISTS (
        SELECT 1 FROM holdfast_workflows
        WHERE finished_at IS NULL AND (stopping IS NOT NULL OR held OR resubmitting IS NOT NULL)
    )
    OR EXISTS (
        SELECT 1 FROM holdfast_workflows
        WHERE deadline_at <= :now AND finished_at IS NULL AND stopping IS NULL
    )
    OR EXISTS (SELECT 1 FROM holdfast_tasks WHERE parked IS NOT NULL);
