-- Progress, stage, heartbeat and output of running tasks. Fenced by each task's own token.
-- Differs from PostgreSQL: the batch is an array of [key, token, {progress, stage, …}].
-- A stage comes with its own meta, or with none; what is null otherwise stays as it is.
UPDATE holdfast_tasks AS task
SET progress = ifnull(change.progress, task.progress),
    stage = ifnull(change.stage, task.stage),
    stage_meta = CASE
        WHEN change.stage IS NOT NULL THEN change.meta
        ELSE ifnull(change.meta, task.stage_meta)
    END,
    heartbeat_at = CASE WHEN change.beat THEN :now ELSE task.heartbeat_at END,
    output = CASE
        WHEN change.output IS NOT NULL
            THEN substr(ifnull(task.output, '') || change.output, 1, :longest)
        ELSE task.output
    END,
    updated_at = :now
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
WHERE task.seq = change.key AND task.status = 'RUNNING' AND task.claim_token = change.token
RETURNING seq AS key;
