-- hand_over: RUNNING → WAITING: the code of a step has returned, and left its value to steps that it
-- adds. CANCELLED instead, if that was requested, or if its workflow winds down and stops such steps.
-- Differs from SQLite in types.
UPDATE holdfast_tasks AS task
SET (
        status, handed_over, finished_at, result, error_code, failed_reason, unique_slot
    ) = (
        SELECT
            CASE WHEN stops THEN 'CANCELLED' ELSE 'WAITING' END,
            CASE WHEN NOT stops THEN true END,
            CASE WHEN stops THEN now END,
            CASE WHEN stops THEN :cancel_error END,
            CASE WHEN stops THEN 'TASK_CANCELLED' END,
            CASE WHEN stops THEN :cancel_reason END,
            CASE WHEN NOT stops OR task.unique_until = 'deleted' THEN task.unique_slot END
        FROM (
            SELECT
                :now AS now,
                task.cancel_requested_at IS NOT NULL
                OR coalesce(
                    (
                        SELECT CASE whole.stopping
                            WHEN 'fail_fast' THEN NOT coalesce(task.step_handler, false)
                            ELSE whole.stop_all OR NOT coalesce(task.step_cleanup, false)
                        END
                        FROM holdfast_workflows AS whole
                        WHERE whole.workflow_id = task.workflow_id AND whole.stopping IS NOT NULL
                    ),
                    false
                ) AS stops
        ) AS decided
    ),
    claim_token = NULL,
    worker_pid = NULL,
    updated_at = :now
WHERE id = :key::uuid AND status = 'RUNNING' AND claim_token = :token::uuid
RETURNING
    id AS key, id, status, attempt, started_at, updated_at, worker_hostname, worker_process_name,
    queue_name, workflow_id;
