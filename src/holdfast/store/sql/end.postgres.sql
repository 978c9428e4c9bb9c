-- fail, retry, snooze, interrupt, stall, recover, ack_cancel: the seven ways to leave RUNNING other
-- than by success. They share one statement because they share their guard (RUNNING, and each
-- task's own token) and the rules that the database, not the worker, has the last word on:
--   a requested cancel turns every one of them into CANCELLED (a request to cancel
--   is never lost, not even with the worker);
--   a retry that is not allowed any more, or would come after good_until, is a fail.
-- Differs from SQLite: the batch is a jsonb map {id: {token, verb, status, …}}.
UPDATE holdfast_tasks AS task
SET (
        status, ready, due_at, run_at, enqueued_at, next_retry_at, expire_at, retry_count,
        crash_count, finished_at, failed_at, result, error_code, failed_reason, dead, unique_slot,
        claimed_at, claimed_by_worker_id
    ) = (
        SELECT
            final.status,
            final.status = 'PENDING',
            CASE WHEN final.status = 'SCHEDULED' THEN final.at END,
            CASE WHEN final.status = 'SCHEDULED' THEN final.at ELSE task.run_at END,
            CASE WHEN final.live AND final.moves THEN final.at ELSE task.enqueued_at END,
            CASE WHEN final.live AND wish.verb = 'retry' THEN final.at ELSE task.next_retry_at END,
            CASE WHEN final.live THEN task.good_until END,
            task.retry_count + (final.live AND wish.verb = 'retry')::int,
            task.crash_count + (wish.verb = 'recover')::int,
            CASE WHEN NOT final.live THEN clock.now END,
            CASE WHEN final.status IN ('FAILED', 'STALLED') THEN clock.now END,
            CASE
                WHEN final.status = 'CANCELLED' AND task.cancel_code = 'WORKFLOW_DEADLINE'
                    THEN :deadline_error
                WHEN final.status = 'CANCELLED' THEN :cancel_error
                WHEN NOT final.live THEN wish.error
            END,
            CASE
                WHEN final.status = 'CANCELLED' THEN coalesce(task.cancel_code, 'TASK_CANCELLED')
                WHEN NOT final.live THEN wish.error_code
            END,
            CASE
                WHEN final.status = 'CANCELLED' AND task.cancel_code = 'WORKFLOW_DEADLINE'
                    THEN :deadline_reason
                WHEN final.status = 'CANCELLED' THEN :cancel_reason
                WHEN NOT final.live THEN wish.failed_reason
            END,
            CASE WHEN final.status IN ('FAILED', 'STALLED') AND wish.dead_letter THEN true END,
            CASE WHEN final.live OR task.unique_until = 'deleted' THEN task.unique_slot END,
            CASE WHEN NOT final.live THEN task.claimed_at END,
            CASE WHEN NOT final.live THEN task.claimed_by_worker_id END
        FROM
            (SELECT :now AS now) AS clock,
            jsonb_to_record(:changes::jsonb -> encode(uuid_send(task.id), 'hex')) AS wish (
                verb text, status text, delay_us bigint, allowed int, error text,
                error_code text, failed_reason text, dead_letter bool
            ),
            LATERAL (
                SELECT
                    clock.now + coalesce(wish.delay_us, 0) * interval '1 microsecond' AS at,
                    wish.delay_us IS NOT NULL OR wish.verb = 'retry' AS moves
            ) AS next,
            LATERAL (
                SELECT CASE
                    WHEN task.cancel_requested_at IS NOT NULL THEN 'CANCELLED'
                    WHEN wish.verb = 'retry'
                        AND (task.retry_count >= wish.allowed OR next.at >= task.good_until)
                        THEN 'FAILED'
                    ELSE wish.status
                END AS status
            ) AS decided,
            LATERAL (
                SELECT
                    decided.status, next.at, next.moves,
                    decided.status IN ('PENDING', 'SCHEDULED') AS live
            ) AS final
    ),
    claim_token = NULL,
    worker_pid = NULL,
    updated_at = :now
WHERE id = ANY (:changes_ids::uuid[])
    AND status = 'RUNNING'
    AND claim_token = (:changes::jsonb -> encode(uuid_send(id), 'hex') ->> 'token')::uuid
    AND (
        cancel_requested_at IS NOT NULL
        OR :changes::jsonb -> encode(uuid_send(id), 'hex') ->> 'verb' <> 'ack_cancel'
    )
RETURNING
    id AS key, id, status, attempt, started_at, updated_at, worker_hostname, worker_process_name,
    queue_name, workflow_id, task_name, slots;
