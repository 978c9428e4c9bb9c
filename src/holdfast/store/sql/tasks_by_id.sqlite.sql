-- Every column of these tasks (except for arguments that no claim would hand out either), and what
-- they said about themselves.
-- Differs from PostgreSQL in how a batch is bound, and in what an operator may name a row by: its
-- integer key, or the text in place of an id, whatever it is.
SELECT
    task.id, task.task_name, task.version, task.queue_name, task.priority, task.status,
    CASE WHEN octet_length(task.args) <= 67108864 THEN task.args ELSE '' END AS args,
    CASE WHEN octet_length(task.kwargs) <= 67108864 THEN task.kwargs ELSE '' END AS kwargs,
    task.task_options, task.tags, task.enqueue_sha, task.sent_at, task.created_at,
    max(task.updated_at, ifnull(note.updated_at, task.updated_at)) AS updated_at,
    task.enqueued_at, task.run_at, task.due_at, task.good_until, task.good_for_us, task.expire_at,
    task.claim_token, task.claimed_at, task.claimed_by_worker_id, task.started_at,
    task.first_started_at, task.retried_at,
    max(task.heartbeat_at, ifnull(note.heartbeat_at, task.heartbeat_at)) AS heartbeat_at,
    task.cancel_requested_at, task.worker_pid, task.worker_hostname, task.worker_process_name,
    task.attempt, task.retry_count, task.max_retries, task.crash_count, task.next_retry_at,
    task.finished_at, task.completed_at, task.failed_at, task.result, task.error_code,
    task.failed_reason, task.dead, note.progress, note.stage, note.stage_meta, note.output,
    task.unique_key, task.unique_slot, task.unique_until, task.concurrency_key, task.workflow_id,
    task.deps_needed,
    task.deps_open, task.parent_id, task.root_id, task.schedule_name, task.schedule_tick,
    task.trace_context, task.scope_id, task.step_number, task.step_name, task.inputs,
    task.handed_over, task.seq AS key
FROM holdfast_tasks AS task
LEFT JOIN holdfast_task_notes AS note ON note.task_seq = task.seq
WHERE task.id IN (SELECT value FROM json_each(:ids))
    OR task.id IN (SELECT value FROM json_each(:texts))
    OR task.seq IN (SELECT value FROM json_each(:numbers));
