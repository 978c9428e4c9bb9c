-- Parts of what attempts printed. Fenced: the task carries the token, or the attempt that has
-- ended did, so that the last part may come after the end. Writing a part again changes nothing.
-- Differs from SQLite: rows come from unnest; each task is looked up by a scalar subquery, which
-- the planner cannot turn into a scan of the whole table.
INSERT INTO holdfast_task_logs (task_id, attempt, part, written_at, data)
SELECT part.key, part.attempt, part.part, :now, part.data
FROM
    unnest(
        :key::uuid[], :token::uuid[], :attempt::int[], :part::int[], :data::bytea[]
    ) AS part (key, token, attempt, part, data)
WHERE part.token IN (
    (SELECT task.claim_token FROM holdfast_tasks AS task WHERE task.id = part.key),
    (
        SELECT ended.claim_token FROM holdfast_task_attempts AS ended
        WHERE ended.task_id = part.key AND ended.attempt = part.attempt
    )
)
ON CONFLICT (task_id, attempt, part) DO UPDATE SET data = excluded.data
RETURNING task_id AS key, attempt, part;
