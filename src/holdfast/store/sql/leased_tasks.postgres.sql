-- The tasks of a lease that still carry its token, and whether they could be locked: one that could
-- not is being ended this instant by its worker. A locked row is answered as it is now, not as it
-- was when the statement began: the worker may have started the task in between.
-- Differs from SQLite: locks.
WITH locked AS MATERIALIZED (
    SELECT
        id AS key, id, status, attempt, retry_count, max_retries, crash_count, good_until,
        task_options, worker_pid, claimed_by_worker_id, worker_hostname, task_name, queue_name
    FROM holdfast_tasks
    WHERE id = ANY (:keys::uuid[]) AND claim_token = :token::uuid
    FOR UPDATE SKIP LOCKED
)
SELECT *, true AS locked
FROM locked
UNION ALL
SELECT
    id, id, status, attempt, retry_count, max_retries, crash_count, good_until, task_options,
    worker_pid, claimed_by_worker_id, worker_hostname, task_name, queue_name, false
FROM holdfast_tasks
WHERE id = ANY (:keys::uuid[])
    AND claim_token = :token::uuid
    AND id <> ALL (ARRAY(SELECT id FROM locked));
