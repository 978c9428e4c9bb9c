-- hand_over: RUNNING → WAITING: the code of a step has returned, and left its value to steps that it
-- adds. CANCELLED instead, if that was requested, or if its workflow winds down and stops such steps.
-- Differs from PostgreSQL in types.
UPDATE holdfast_tasks AS task
SET status = iif(decided.why IS NULL, 'WAITING', 'CANCELLED'),
    handed_over = iif(decided.why IS NULL, 1, NULL),
    finished_at = iif(decided.why IS NULL, NULL, :now),
    result = CASE
        WHEN decided.why = 'deadline' THEN :deadline_error
        WHEN decided.why = 'fail_fast' THEN :stopped_error
        WHEN decided.why IS NOT NULL THEN :cancel_error
    END,
    error_code = CASE
        WHEN decided.why = 'deadline' THEN 'WORKFLOW_DEADLINE'
        WHEN decided.why IS NOT NULL THEN 'TASK_CANCELLED'
    END,
    failed_reason = CASE
        WHEN decided.why = 'deadline' THEN :deadline_reason
        WHEN decided.why = 'fail_fast' THEN :stopped_reason
        WHEN decided.why IS NOT NULL THEN :cancel_reason
    END,
    unique_slot = CASE
        WHEN decided.why IS NULL OR task.unique_until = 'deleted' THEN task.unique_slot
    END,
    claim_token = NULL,
    worker_pid = NULL,
    updated_at = :now
FROM (
    SELECT
        held.seq,
        CASE
            WHEN held.cancel_requested_at IS NOT NULL
                THEN iif(held.cancel_code = 'WORKFLOW_DEADLINE', 'deadline', 'cancel')
            WHEN whole.stopping = 'fail_fast'
                THEN iif(ifnull(held.step_handler, 0), NULL, whole.stopping)
            WHEN whole.stop_all OR NOT ifnull(held.step_cleanup, 0) THEN whole.stopping
        END AS why
    FROM holdfast_tasks AS held
    LEFT JOIN holdfast_workflows AS whole ON whole.workflow_id = held.workflow_id
    WHERE held.seq = :key
) AS decided
WHERE task.seq = decided.seq AND task.status = 'RUNNING' AND task.claim_token = :token
RETURNING
    seq AS key, CAST(id AS BLOB) AS id, CAST(status AS BLOB) AS status, attempt, started_at,
    updated_at, CAST(worker_hostname AS BLOB) AS worker_hostname,
    CAST(worker_process_name AS BLOB) AS worker_process_name,
    CAST(queue_name AS BLOB) AS queue_name, CAST(workflow_id AS BLOB) AS workflow_id,
    CAST(task_name AS BLOB) AS task_name, slots;
