-- Keep the value of one step of a running task. Fenced by its token.
-- Differs from SQLite: the task is locked while this is written, so that a claim which is being
-- taken away at this moment is waited for and then found to be gone.
WITH held AS (
    SELECT id, attempt
    FROM holdfast_tasks
    WHERE id = :key::uuid AND status = 'RUNNING' AND claim_token = :token::uuid
    FOR NO KEY UPDATE
)
INSERT INTO holdfast_checkpoints (task_id, name, value, attempt, created_at)
SELECT held.id, :name, :value, held.attempt, :now
FROM held
ON CONFLICT (task_id, name) DO UPDATE
SET value = excluded.value, attempt = excluded.attempt, created_at = excluded.created_at
RETURNING name;
