-- Every column of these tasks. Differs from PostgreSQL in how a batch is bound.
SELECT
    id, task_name, version, queue_name, priority, status, args, kwargs, task_options, tags,
    enqueue_sha, sent_at, created_at, updated_at, enqueued_at, run_at, due_at, good_until,
    good_for_us, expire_at, claim_token, claimed_at, claimed_by_worker_id, started_at,
    first_started_at, retried_at, heartbeat_at, cancel_requested_at, worker_pid, worker_hostname,
    worker_process_name, attempt, retry_count, max_retries, crash_count, next_retry_at, finished_at,
    completed_at, failed_at, result, error_code, failed_reason, dead, progress, stage, stage_meta,
    output, unique_key, unique_slot, concurrency_key, workflow_id, deps_needed, deps_open,
    parent_id, root_id, schedule_name, schedule_tick, trace_context
FROM holdfast_tasks
WHERE id IN (SELECT value FROM json_each(:ids));
