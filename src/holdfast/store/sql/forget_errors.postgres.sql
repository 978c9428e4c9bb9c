-- The first bad ending of a scope is no more: what runs again is none. Another one takes its place.
-- Differs from SQLite in how a batch is bound.
UPDATE holdfast_scopes AS scope
SET error_id = (
        SELECT task.id
        FROM holdfast_tasks AS task
        WHERE task.scope_id = scope.scope_id AND task.step_number IS NOT NULL AND task.step_required
            AND task.finished_at IS NOT NULL AND task.status <> 'COMPLETED'
            AND task.error_code <> 'UPSTREAM_SUCCEEDED' AND task.parked IS DISTINCT FROM 'pause'
        ORDER BY task.step_number
        LIMIT 1
    )
WHERE scope.scope_id = ANY (:scopes::uuid[]) AND scope.error_id = ANY (:ids::uuid[]);
