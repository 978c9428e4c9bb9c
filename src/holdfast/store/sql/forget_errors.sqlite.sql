-- The first bad ending of a scope is no more: what runs again is none. Another one takes its place.
-- Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_scopes
SET error_id = (
        SELECT task.id
        FROM holdfast_tasks AS task
        WHERE task.scope_id = holdfast_scopes.scope_id AND task.step_number IS NOT NULL
            AND task.step_required AND task.finished_at IS NOT NULL AND task.status <> 'COMPLETED'
            AND task.error_code <> 'UPSTREAM_SUCCEEDED' AND task.parked IS NOT 'pause'
        ORDER BY task.step_number
        LIMIT 1
    )
WHERE scope_id IN (SELECT value FROM json_each(:scopes))
    AND error_id IN (SELECT value FROM json_each(:ids));
