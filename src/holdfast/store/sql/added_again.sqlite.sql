-- Some of the steps that one has added and that ended badly themselves, before it was resubmitted.
-- Differs from PostgreSQL in types.
SELECT task.id
FROM holdfast_tasks AS adder
JOIN holdfast_tasks AS task ON task.scope_id = adder.id AND task.id <> adder.id
WHERE adder.id = :id AND task.finished_at <= adder.enqueued_at
    AND task.status IN ('FAILED', 'CANCELLED', 'EXPIRED', 'STALLED', 'DROPPED')
    AND task.error_code NOT IN ('UPSTREAM_FAILED', 'UPSTREAM_CANCELLED', 'UPSTREAM_SUCCEEDED')
ORDER BY task.step_number
LIMIT :batch;
