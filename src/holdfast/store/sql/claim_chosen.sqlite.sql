-- claim_chosen: PENDING → CLAIMED, or at once RUNNING, as `claim` does it, for tasks that were chosen
-- under limits (`limited_claims`).
-- Differs from PostgreSQL: one writer at a time, so nothing is locked or skipped; the lease row is
-- written first, as for `claim`; `slots` is a JSON map {key: slots}. NOT INDEXED: rows are reached by
-- their keys; by the index of what is claimable SQLite would walk the whole queue.
INSERT INTO holdfast_leases (token, worker_id, expires_at, task_ids)
SELECT :token, :worker_id, :now + :lease_us, json_group_array(seq)
FROM holdfast_tasks NOT INDEXED
WHERE seq IN (SELECT value FROM json_each(:keys)) AND ready AND queue_name = :queue_name
HAVING count(*) > 0;
UPDATE holdfast_tasks NOT INDEXED
SET status = iif(:begins, 'RUNNING', 'CLAIMED'), ready = 0, claim_token = :token,
    slots = json_extract(:slots, '$."' || seq || '"'), claimed_at = :now,
    claimed_by_worker_id = :worker_id, expire_at = NULL, updated_at = :now,
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
