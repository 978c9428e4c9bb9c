-- drop: PENDING → DROPPED: no live worker has known this name and version for too long.
-- Differs from SQLite in how a batch is bound. The caller has asked who knows what.
UPDATE holdfast_tasks
SET status = 'DROPPED', ready = false, expire_at = NULL, finished_at = :now, failed_at = :now,
    result = :error, error_code = 'TASK_DROPPED', failed_reason = :reason,
    unique_slot = CASE WHEN unique_until = 'deleted' THEN unique_slot END,
    dead = CASE WHEN coalesce(task_options::jsonb ->> 'dead_letter', 'true') = 'true' THEN true END,
    updated_at = :now
WHERE id = ANY (:ids::uuid[]) AND status = 'PENDING'
RETURNING id, status, workflow_id, task_name, version;
