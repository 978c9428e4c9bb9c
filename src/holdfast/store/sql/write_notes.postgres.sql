-- Progress, stage, heartbeat and output of running tasks. Fenced by each task's own token, and the
-- task is locked, so that its end comes before or after. Its row is not changed: a transaction of
-- its own code that sees the past could not complete it any more.
-- Differs from SQLite: the batch is a jsonb map {id: {token, progress, stage, meta, beat, output}}.
-- A stage comes with its own meta, or with none; what is null otherwise stays as it is.
INSERT INTO holdfast_task_notes AS note (
    task_id, progress, stage, stage_meta, output, heartbeat_at, updated_at
)
SELECT
    id,
    change ->> 'progress',
    change ->> 'stage',
    change ->> 'meta',
    left(change ->> 'output', :longest::int),
    CASE WHEN (change ->> 'beat')::bool THEN :now END,
    :now
FROM (
    SELECT id, :changes::jsonb -> encode(uuid_send(id), 'hex') AS change
    FROM holdfast_tasks
    WHERE id = ANY (:changes_ids::uuid[])
        AND status = 'RUNNING'
        AND claim_token = (:changes::jsonb -> encode(uuid_send(id), 'hex') ->> 'token')::uuid
    FOR NO KEY UPDATE
) AS run
ON CONFLICT (task_id) DO UPDATE
SET progress = coalesce(excluded.progress, note.progress),
    stage = coalesce(excluded.stage, note.stage),
    stage_meta = CASE
        WHEN excluded.stage IS NOT NULL THEN excluded.stage_meta
        ELSE coalesce(excluded.stage_meta, note.stage_meta)
    END,
    output = CASE
        WHEN excluded.output IS NOT NULL
            THEN left(coalesce(note.output, '') || excluded.output, :longest::int)
        ELSE note.output
    END,
    heartbeat_at = coalesce(excluded.heartbeat_at, note.heartbeat_at),
    updated_at = excluded.updated_at
RETURNING task_id AS key;
