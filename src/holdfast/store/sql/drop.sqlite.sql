-- drop: PENDING → DROPPED: no live worker has known this name and version for too long.
-- Differs from PostgreSQL in how a batch is bound. The caller has asked who knows what.
UPDATE holdfast_tasks
SET status = 'DROPPED', ready = 0, expire_at = NULL, finished_at = :now, failed_at = :now,
    result = :error, error_code = 'TASK_DROPPED', failed_reason = :reason,
    unique_slot = CASE WHEN unique_until = 'deleted' THEN unique_slot END,
    dead = CASE WHEN ifnull(json_extract(task_options, '$.dead_letter'), 1) THEN 1 END,
    updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids)) AND status = 'PENDING'
RETURNING
    CAST(id AS BLOB) AS id, CAST(status AS BLOB) AS status,
    CAST(workflow_id AS BLOB) AS workflow_id, CAST(task_name AS BLOB) AS task_name, version;
