-- Where steps are counted, and how they stand. Differs from PostgreSQL in how a batch is bound.
SELECT id, scope_id, step_number, step_part, step_required, status, error_code
FROM holdfast_tasks
WHERE id IN (SELECT value FROM json_each(:ids)) AND scope_id IS NOT NULL AND step_part IS NOT NULL
    AND coalesce(parked, '') <> 'pause'
ORDER BY scope_id, step_number;
