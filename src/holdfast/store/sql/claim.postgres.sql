-- claim: PENDING → CLAIMED, in the order priority, enqueued_at, id, within one queue; and at once
-- CLAIMED → RUNNING, with all that `start` writes, if it is made for a child.
--
-- Invariant: a task is claimed by one token, and that token's lease row names it.
-- Failure: the answer may be lost; the token tells (see `release_token`).
--
-- `examined` is read lazily, at most 1,000 entries after the given position, so that tasks nobody
-- here knows, and dead index entries under someone's open snapshot, cost a bounded amount. Each
-- candidate is locked by its key as it is needed: no more rows are locked than are claimed. (It
-- says `status`, not `ready`: the partial index on `ready` would be read from end to end for each.)
-- What is too long to be handed out is answered empty, which nothing that was sent is; the caller
-- ends such a task. (Its length is known without reading it.)
-- A careful claim passes over rows that break the constraints of the table, which would have the
-- whole claim refused.
-- Only tasks without a key, and only under the limits that the caller knows: one who does not know
-- of a change gets nothing, and has to learn of it first (`limited_claims`).
-- A task that was sent by name, without its definition, is given the rules of whoever claims it.
-- Differs from SQLite: row locks, and the lease row is written by the same statement.
WITH picked AS MATERIALIZED (
    SELECT locked.id
    FROM (
        SELECT
            task.id, task.task_name, task.version, task.good_until, task.attempt,
            CASE
                WHEN :careful::boolean THEN task.claim_token IS NULL AND task.due_at IS NULL
                    AND task.finished_at IS NULL AND task.error_code IS NULL
                    AND length(task.task_name) BETWEEN 1 AND 255
                    AND length(task.queue_name) BETWEEN 1 AND 100
                    AND isfinite(task.enqueued_at) AND isfinite(task.created_at)
                    AND coalesce(octet_length(task.task_options), 0) <= 10000000
                    AND coalesce(octet_length(task.trace_context), 0) <= 10000000
                ELSE true
            END AS sound
        FROM holdfast_tasks AS task
        WHERE task.queue_name = :queue_name
            AND task.ready
            AND coalesce(task.concurrency_key, '') = ''
            AND (task.priority, task.enqueued_at, task.id)
                > (:after_priority::int, :after_enqueued_at::timestamptz, :after_id::uuid)
        ORDER BY task.priority, task.enqueued_at, task.id
        LIMIT 1000
    ) AS examined
    CROSS JOIN LATERAL (
        SELECT task.id
        FROM holdfast_tasks AS task
        WHERE task.id = examined.id
            AND task.status = 'PENDING'
            AND task.queue_name = :queue_name
        FOR UPDATE SKIP LOCKED
    ) AS locked
    WHERE examined.task_name || '@' || examined.version = ANY (:known::text[])
        AND (examined.good_until IS NULL OR examined.good_until > :now)
        AND examined.attempt <= :most_starts::int
        AND examined.sound
        AND examined.id <> ALL (:aside::uuid[])
        AND NOT EXISTS (
            SELECT FROM holdfast_queues AS queue
            WHERE queue.queue_name = :queue_name AND queue.paused_at IS NOT NULL
        )
        AND (SELECT value FROM holdfast_meta WHERE name = 'limits')
            IS NOT DISTINCT FROM :limits_version::text
    LIMIT :wanted::int
), claimed AS (
    UPDATE holdfast_tasks AS task
    SET status = CASE WHEN :begins::boolean THEN 'RUNNING' ELSE 'CLAIMED' END,
        ready = false, claim_token = :token::uuid, slots = 0, claimed_at = :now,
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
