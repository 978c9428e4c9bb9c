-- Keep the value of one step of a running task. Fenced by its token.
-- Differs from PostgreSQL: there is one writer at a time, so nothing needs to be locked.
INSERT INTO holdfast_checkpoints (task_seq, name, value, attempt, created_at)
SELECT task.seq, :name, :value, task.attempt, :now
FROM holdfast_tasks AS task
WHERE task.seq = :key AND task.status = 'RUNNING' AND task.claim_token = :token
ON CONFLICT (task_seq, name) DO UPDATE
SET value = excluded.value, attempt = excluded.attempt, created_at = excluded.created_at
RETURNING 1;
