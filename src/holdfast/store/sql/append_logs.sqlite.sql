-- Parts of what attempts printed. Fenced: the task carries the token, or the attempt that has
-- ended did, so that the last part may come after the end. Writing a part again changes nothing.
-- Differs from PostgreSQL in the key of a task; run once per part.
INSERT INTO holdfast_task_logs (task_seq, attempt, part, written_at, data)
SELECT :key, :attempt, :part, :now, :data
WHERE :token IN (
    (SELECT task.claim_token FROM holdfast_tasks AS task WHERE task.seq = :key),
    (
        SELECT ended.claim_token FROM holdfast_task_attempts AS ended
        WHERE ended.task_seq = :key AND ended.attempt = :attempt
    )
)
ON CONFLICT (task_seq, attempt, part) DO UPDATE SET data = excluded.data
RETURNING task_seq AS key, attempt, part;
