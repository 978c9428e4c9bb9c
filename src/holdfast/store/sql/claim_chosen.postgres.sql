-- claim_chosen: PENDING → CLAIMED, or at once RUNNING, as `claim` does it, for tasks that were chosen
-- under limits (`limited_claims`). What somebody else has taken or holds is passed over.
-- Differs from SQLite: row locks, the lease row is written by the same statement, and `slots` is a
-- jsonb map {id: slots}.
WITH picked AS MATERIALIZED (
    SELECT task.id
    FROM holdfast_tasks AS task
    WHERE task.id = ANY (:keys::uuid[])
        AND task.status = 'PENDING'
        AND task.queue_name = :queue_name
    FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE holdfast_tasks AS task
    SET status = CASE WHEN :begins::boolean THEN 'RUNNING' ELSE 'CLAIMED' END,
        ready = false, claim_token = :token::uuid,
        slots = (:slots::jsonb ->> encode(uuid_send(task.id), 'hex'))::smallint, claimed_at = :now,
        claimed_by_worker_id = :worker_id, expire_at = NULL, updated_at = :now,
        attempt = task.attempt + CASE WHEN :begins::boolean THEN 1 ELSE 0 END,
        started_at = CASE WHEN :begins::boolean THEN :now ELSE task.started_at END,
        first_started_at = CASE
            WHEN :begins::boolean THEN coalesce(task.first_started_at, :now)
            ELSE task.first_started_at
        END,
        retried_at = CASE
            WHEN :begins::boolean AND task.retry_count > 0 THEN :now
            ELSE task.retried_at
        END,
        heartbeat_at = CASE WHEN :begins::boolean THEN :now ELSE task.heartbeat_at END,
        next_retry_at = CASE WHEN :begins::boolean THEN NULL ELSE task.next_retry_at END,
        unique_slot = CASE
            WHEN :begins::boolean AND task.unique_until = 'started' THEN NULL
            ELSE task.unique_slot
        END,
        worker_hostname = CASE
            WHEN :begins::boolean THEN :hostname
            ELSE task.worker_hostname
        END,
        worker_pid = CASE WHEN :begins::boolean THEN :pid::int ELSE task.worker_pid END,
        worker_process_name = CASE
            WHEN :begins::boolean THEN :process_name
            ELSE task.worker_process_name
        END,
        task_options = CASE
            WHEN task.task_options = :by_name
            THEN :policies::jsonb -> (task.task_name || '@' || task.version) ->> 0
            ELSE task.task_options
        END,
        max_retries = CASE
            WHEN task.task_options = :by_name
            THEN coalesce(
                (:policies::jsonb -> (task.task_name || '@' || task.version) ->> 1)::int, 0
            )
            ELSE task.max_retries
        END
    WHERE task.id = ANY (ARRAY(SELECT id FROM picked))
    RETURNING
        task.id AS key, task.id, task.task_name, task.version, task.queue_name, task.priority,
        task.enqueued_at,
        CASE WHEN octet_length(task.args) <= :longest::int THEN task.args ELSE '' END,
        CASE WHEN octet_length(task.kwargs) <= :longest::int THEN task.kwargs ELSE '' END,
        task.task_options,
        task.attempt - CASE WHEN :begins::boolean THEN 1 ELSE 0 END AS attempt,
        task.retry_count, task.max_retries, task.crash_count, task.good_until, task.schedule_tick,
        task.parent_id, task.root_id, task.workflow_id,
        task.trace_context, task.scope_id, task.inputs
), leased AS (
    INSERT INTO holdfast_leases (token, worker_id, expires_at, task_ids)
    SELECT
        :token::uuid, :worker_id, :now + :lease_us::bigint * interval '1 microsecond',
        array_agg(id)
    FROM claimed
    HAVING count(*) > 0
)
SELECT * FROM claimed;
