-- cancel: WAITING, SCHEDULED, PENDING, CLAIMED → CANCELLED at once, and
-- request_cancel: RUNNING → RUNNING with the wish noted; its worker hears of it.
-- One statement, so that a task cannot slip from one state to the other between two.
-- (One that has handed over is asked, too: it ends with what it added.)
-- Differs from SQLite in how a batch is bound.
WITH cancelled AS (
    UPDATE holdfast_tasks AS task
    SET (
            status, ready, due_at, expire_at, claim_token, finished_at, result, error_code,
            failed_reason, unique_slot, cancel_requested_at, cancel_code
        ) = (
            SELECT
                CASE WHEN running THEN status ELSE 'CANCELLED' END,
                false,
                NULL::timestamptz,
                NULL::timestamptz,
                CASE WHEN running THEN claim_token END,
                CASE WHEN NOT running THEN now END,
                CASE WHEN NOT running THEN :cancel_error END,
                CASE WHEN NOT running THEN :cancel_code::text END,
                CASE WHEN NOT running THEN :cancel_reason END,
                CASE WHEN running OR unique_until = 'deleted' THEN unique_slot END,
                CASE WHEN running THEN coalesce(cancel_requested_at, now) END,
                CASE WHEN running THEN coalesce(cancel_code, :cancel_code::text) END
            FROM (SELECT :now AS now, task.status = 'RUNNING' OR task.handed_over IS TRUE AS running) AS state
        ),
        updated_at = :now
    WHERE id = ANY (:ids::uuid[])
        AND status IN ('WAITING', 'SCHEDULED', 'PENDING', 'CLAIMED', 'RUNNING')
    RETURNING id, status, workflow_id, slots, queue_name, task_name
)
SELECT
    id, status, workflow_id, slots, queue_name, task_name,
    (SELECT count(pg_notify(:hint_channel, p)) FROM unnest(:hint_payloads::text[]) AS p)
FROM cancelled;
