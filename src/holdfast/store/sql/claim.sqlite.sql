-- claim: PENDING → CLAIMED, in the order priority, enqueued_at, id, within one queue; and at once
-- CLAIMED → RUNNING, with all that `start` writes, if it is made for a child.
-- Differs from PostgreSQL: one writer at a time, so nothing is locked or skipped; the lease row is
-- written first and the tasks follow from it; they come back in one JSON text, because each row that
-- is fetched has to wait for the interpreter's lock. (None do if the UPDATE, the last change, found
-- none: the token was used before.) As bytes: in a text, one value that is not UTF-8 would make
-- the library refuse all. What is too long to be handed out is emptied, because a row that is
-- written here is written whole. At most 1,000 entries are examined. A careful claim passes over
-- rows that break the constraints of the table, which would have the whole claim refused. Only tasks
-- without a key are taken, and only under the limits that the caller knows.
INSERT INTO holdfast_leases (token, worker_id, expires_at, task_ids)
SELECT :token, :worker_id, :now + :lease_us, json_group_array(seq)
FROM (
    SELECT seq
    FROM (
        SELECT
            seq, task_name, version, good_until, attempt,
            iif(:careful, status = 'PENDING' AND claim_token IS NULL AND due_at IS NULL
                AND finished_at IS NULL AND error_code IS NULL
                AND priority BETWEEN 1 AND 100
                AND length(id) = 36 AND id NOT GLOB '*[^0-9a-f-]*'
                AND length(task_name) BETWEEN 1 AND 255 AND length(queue_name) BETWEEN 1 AND 100
                AND attempt BETWEEN 0 AND 2147483647 AND retry_count BETWEEN 0 AND 2147483647
                AND crash_count BETWEEN 0 AND 2147483647 AND max_retries BETWEEN 0 AND 2147483647
                AND enqueued_at < 253402300800000000 AND created_at < 253402300800000000
                AND ifnull(length(task_options), 0) <= 10000000
                AND ifnull(length(trace_context), 0) <= 10000000, 1) AS sound
        FROM holdfast_tasks
        WHERE queue_name = :queue_name
            AND ready
            AND coalesce(concurrency_key, '') = ''
            AND (priority, enqueued_at, id) > (:after_priority, :after_enqueued_at, :after_id)
        ORDER BY priority, enqueued_at, id
        LIMIT 1000
    )
    WHERE task_name || '@' || version IN (SELECT value FROM json_each(:known))
        AND (good_until IS NULL OR good_until > :now)
        AND attempt <= :most_starts
        AND sound
        AND seq NOT IN (SELECT value FROM json_each(:aside))
        AND NOT EXISTS (
            SELECT 1 FROM holdfast_queues AS queue
            WHERE queue.queue_name = :queue_name AND queue.paused_at IS NOT NULL
        )
        AND (SELECT value FROM holdfast_meta WHERE name = 'limits') IS :limits_version
    LIMIT :wanted
)
HAVING count(*) > 0;
UPDATE holdfast_tasks
SET status = iif(:begins, 'RUNNING', 'CLAIMED'), ready = 0, claim_token = :token,
    slots = 0, claimed_at = :now, claimed_by_worker_id = :worker_id, expire_at = NULL, updated_at = :now,
    attempt = attempt + :begins,
    started_at = iif(:begins, :now, started_at),
    first_started_at = iif(:begins, ifnull(first_started_at, :now), first_started_at),
    retried_at = iif(:begins AND retry_count > 0, :now, retried_at),
    heartbeat_at = iif(:begins, :now, heartbeat_at),
    next_retry_at = iif(:begins, NULL, next_retry_at),
    unique_slot = iif(:begins AND unique_until = 'started', NULL, unique_slot),
    worker_hostname = iif(:begins, :hostname, worker_hostname),
    worker_pid = iif(:begins, :pid, worker_pid),
    worker_process_name = iif(:begins, :process_name, worker_process_name),
    args = iif(octet_length(args) > :longest, '', args),
    kwargs = iif(octet_length(kwargs) > :longest, '', kwargs),
    task_options = CASE
        WHEN task_options = :by_name
        THEN json_extract(:policies, '$."' || task_name || '@' || version || '"[0]')
        ELSE task_options
    END,
    max_retries = CASE
        WHEN task_options = :by_name
        THEN ifnull(json_extract(:policies, '$."' || task_name || '@' || version || '"[1]'), 0)
        ELSE max_retries
    END
WHERE seq IN (
    SELECT task.value
    FROM holdfast_leases AS lease, json_each(lease.task_ids) AS task
    WHERE lease.token = :token
) AND ready;
SELECT CAST(
    json_group_array(
        json_array(
            seq, id, task_name, version, queue_name, priority, enqueued_at, args, kwargs,
            task_options, attempt - :begins, retry_count, max_retries, crash_count, good_until,
            schedule_tick, parent_id, root_id, workflow_id, trace_context,
            scope_id, inputs
        )
    ) AS BLOB
)
FROM holdfast_tasks
WHERE changes() > 0 AND seq IN (
    SELECT task.value
    FROM holdfast_leases AS lease, json_each(lease.task_ids) AS task
    WHERE lease.token = :token
);
