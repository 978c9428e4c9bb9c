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
            CASE
                WHEN why = 'deadline' THEN :deadline_error
                WHEN why = 'fail_fast' THEN :stopped_error
                WHEN stops THEN :cancel_error
            END,
            CASE WHEN why = 'deadline' THEN 'WORKFLOW_DEADLINE' WHEN stops THEN 'TASK_CANCELLED' END,
            CASE
                WHEN why = 'deadline' THEN :deadline_reason
                WHEN why = 'fail_fast' THEN :stopped_reason
                WHEN stops THEN :cancel_reason
            END,
            CASE WHEN NOT stops OR task.unique_until = 'deleted' THEN task.unique_slot END
        FROM (
            SELECT :now AS now, coalesce(asked.why, stopped.why) AS why,
                coalesce(asked.why, stopped.why) IS NOT NULL AS stops
            FROM
                (
                    SELECT CASE
                        WHEN task.cancel_requested_at IS NULL THEN NULL
                        WHEN task.cancel_code = 'WORKFLOW_DEADLINE' THEN 'deadline'
                        ELSE 'cancel'
                    END AS why
                ) AS asked,
                (
                    SELECT (
                        SELECT whole.stopping
                        FROM holdfast_workflows AS whole
                        WHERE whole.workflow_id = task.workflow_id
                            AND CASE whole.stopping
                                WHEN 'fail_fast' THEN NOT coalesce(task.step_handler, false)
                                ELSE whole.stop_all OR NOT coalesce(task.step_cleanup, false)
                            END
                    ) AS why
                ) AS stopped
        ) AS decided
    ),
    claim_token = NULL,
    worker_pid = NULL,
    updated_at = :now
WHERE id = :key::uuid AND status = 'RUNNING' AND claim_token = :token::uuid
RETURNING
    id AS key, id, status, attempt, started_at, updated_at, worker_hostname, worker_process_name,
    queue_name, workflow_id, task_name, slots;
