-- hand_over: RUNNING → WAITING: the code of a step has returned, and left its value to steps that it
-- adds. CANCELLED instead, if that was requested, or if its workflow winds down and stops such steps.
-- Differs from PostgreSQL in types.
UPDATE holdfast_tasks AS task
SET status = iif(decided.stops, 'CANCELLED', 'WAITING'),
    handed_over = iif(decided.stops, NULL, 1),
    finished_at = iif(decided.stops, :now, NULL),
    result = iif(decided.stops, :cancel_error, NULL),
    error_code = iif(decided.stops, 'TASK_CANCELLED', NULL),
    failed_reason = iif(decided.stops, :cancel_reason, NULL),
    unique_slot = CASE
        WHEN NOT decided.stops OR task.unique_until = 'deleted' THEN task.unique_slot
    END,
    claim_token = NULL,
    worker_pid = NULL,
    updated_at = :now
FROM (
    SELECT
        held.seq,
        held.cancel_requested_at IS NOT NULL OR ifnull(
            CASE
                WHEN whole.stopping IS NULL THEN 0
                WHEN whole.stopping = 'fail_fast' THEN NOT ifnull(held.step_handler, 0)
                ELSE whole.stop_all OR NOT ifnull(held.step_cleanup, 0)
            END,
            0
        ) AS stops
    FROM holdfast_tasks AS held
    LEFT JOIN holdfast_workflows AS whole ON whole.workflow_id = held.workflow_id
    WHERE held.seq = :key
) AS decided
WHERE task.seq = decided.seq AND task.status = 'RUNNING' AND task.claim_token = :token
RETURNING
    seq AS key, CAST(id AS BLOB) AS id, CAST(status AS BLOB) AS status, attempt, started_at,
    updated_at, CAST(worker_hostname AS BLOB) AS worker_hostname,
    CAST(worker_process_name AS BLOB) AS worker_process_name,
    CAST(queue_name AS BLOB) AS queue_name, CAST(workflow_id AS BLOB) AS workflow_id;
