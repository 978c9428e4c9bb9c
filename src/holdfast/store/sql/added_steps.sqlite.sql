-- Some of the steps that these have added: those that have not ended and that nobody has asked to, or
-- those that ended badly themselves. Differs from PostgreSQL in how a batch is bound.
SELECT id
FROM holdfast_tasks
WHERE scope_id IN (SELECT value FROM json_each(:scopes)) AND id <> scope_id
    AND CASE
        WHEN :bad THEN status IN ('FAILED', 'CANCELLED', 'EXPIRED', 'STALLED', 'DROPPED')
            AND error_code NOT IN ('UPSTREAM_FAILED', 'UPSTREAM_CANCELLED', 'UPSTREAM_SUCCEEDED')
        ELSE finished_at IS NULL AND cancel_requested_at IS NULL
    END
ORDER BY id
LIMIT :batch;
