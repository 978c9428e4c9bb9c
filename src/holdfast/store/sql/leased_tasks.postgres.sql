-- The tasks of a lease that still carry its token, and whether they could be locked: one that could
-- not is being ended this instant by its worker. Differs from SQLite: locks.
WITH locked AS MATERIALIZED (
    SELECT id
    FROM holdfast_tasks
    WHERE id = ANY (:keys::uuid[]) AND claim_token = :token::uuid
    FOR UPDATE SKIP LOCKED
)
SELECT
    id AS key, id, status, attempt, retry_count, max_retries, crash_count, good_until,
    task_options, worker_pid, claimed_by_worker_id, worker_hostname, task_name, queue_name,
    id = ANY (ARRAY(SELECT id FROM locked)) AS locked
FROM holdfast_tasks
WHERE id = ANY (:keys::uuid[]) AND claim_token = :token::uuid;
