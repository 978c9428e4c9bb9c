-- Workflows, newest first, before a given one. Differs from SQLite in types.
SELECT
    whole.workflow_id, whole.workflow_name, whole.version, whole.status, whole.on_failure,
    whole.stopping, whole.stopped_by, whole.paused_at, whole.paused_by, whole.deadline_us,
    whole.deadline_at, whole.run_at, whole.unique_key, whole.tags, whole.arguments,
    whole.created_at, whole.updated_at, whole.finished_at, whole.steps, whole.parent_id,
    whole.step_id, whole.root_id, whole.trace_context, scope.returns, scope.error_id
FROM holdfast_workflows AS whole
LEFT JOIN holdfast_scopes AS scope ON scope.scope_id = whole.workflow_id
WHERE (
        :before::uuid IS NULL
        OR (whole.created_at, whole.workflow_id) < (
            SELECT last.created_at, last.workflow_id
            FROM holdfast_workflows AS last
            WHERE last.workflow_id = :before::uuid
        )
    )
    AND (cardinality(:statuses::text[]) = 0 OR whole.status = ANY (:statuses::text[]))
    AND (:name::text IS NULL OR whole.workflow_name = :name::text)
    AND (:tag::text IS NULL OR whole.tags::jsonb ? :tag::text)
    AND (:created_from::timestamptz IS NULL OR whole.created_at >= :created_from::timestamptz)
    AND (:created_until::timestamptz IS NULL OR whole.created_at < :created_until::timestamptz)
    AND (:with_parts::bool OR whole.parent_id IS NULL)
ORDER BY whole.created_at DESC, whole.workflow_id DESC
LIMIT :limit::int;
