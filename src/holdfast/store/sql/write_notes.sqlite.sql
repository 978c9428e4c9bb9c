-- Progress, stage, heartbeat and output of running tasks. Fenced by each task's own token.
-- Differs from PostgreSQL: the batch is an array of [key, token, {progress, stage, …}], and nobody
-- else writes.
-- A stage comes with its own meta, or with none; what is null otherwise stays as it is.
INSERT INTO holdfast_task_notes (
    task_seq, progress, stage, stage_meta, output, heartbeat_at, updated_at
)
SELECT
    task.seq, change.progress, change.stage, change.meta, substr(change.output, 1, :longest),
    CASE WHEN change.beat THEN :now END, :now
FROM (
    SELECT
        json_extract(value, '$[0]') AS key,
        json_extract(value, '$[1]') AS token,
        json_extract(value, '$[2].progress') AS progress,
        json_extract(value, '$[2].stage') AS stage,
        json_extract(value, '$[2].meta') AS meta,
        json_extract(value, '$[2].beat') AS beat,
        json_extract(value, '$[2].output') AS output
    FROM json_each(:changes)
) AS change
CROSS JOIN holdfast_tasks AS task
WHERE task.seq = change.key AND task.status = 'RUNNING' AND task.claim_token = change.token
ON CONFLICT (task_seq) DO UPDATE
SET progress = ifnull(excluded.progress, progress),
    stage = ifnull(excluded.stage, stage),
    stage_meta = CASE
        WHEN excluded.stage IS NOT NULL THEN excluded.stage_meta
        ELSE ifnull(excluded.stage_meta, stage_meta)
    END,
    output = CASE
        WHEN excluded.output IS NOT NULL
            THEN substr(ifnull(output, '') || excluded.output, 1, :longest)
        ELSE output
    END,
    heartbeat_at = ifnull(excluded.heartbeat_at, heartbeat_at),
    updated_at = excluded.updated_at
RETURNING task_seq AS key;
