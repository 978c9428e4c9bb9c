-- fail_fast, deadline, cancel: the whole begins to wind down; what is stopped is stopped after it. A
-- cancel goes before what else stops it. Differs from SQLite in types.
UPDATE holdfast_workflows
SET stopping = :why, stopped_by = :stopped_by::text, stop_all = :stop_all::bool,
    status = CASE WHEN :why = 'fail_fast' THEN status ELSE 'RUNNING' END,
    paused_at = CASE WHEN :why = 'fail_fast' THEN paused_at END,
    paused_by = CASE WHEN :why = 'fail_fast' THEN paused_by END, updated_at = :now
WHERE workflow_id = :id::uuid AND finished_at IS NULL
    AND CASE :why
        WHEN 'fail_fast' THEN on_failure = 'fail_fast' AND stopping IS NULL
        WHEN 'deadline' THEN deadline_at <= :now AND coalesce(stopping, '') NOT IN ('deadline', 'cancel')
        ELSE stopping IS DISTINCT FROM 'cancel' OR (:stop_all::bool AND NOT stop_all)
    END
RETURNING workflow_id;
