-- The value of one step of a running task; no row if the claim is not ours any more, a null if
-- the step has not been made. Differs from PostgreSQL in the key of a task.
SELECT point.value
FROM holdfast_tasks AS task
LEFT JOIN holdfast_checkpoints AS point ON point.task_seq = task.seq AND point.name = :name
WHERE task.seq = :key AND task.status = 'RUNNING' AND task.claim_token = :token;
