-- Progress, stage, heartbeat and output of running tasks. Fenced by each task's own token.
-- Differs from SQLite: the batch is a jsonb map {id: {token, progress, stage, meta, beat, output}}.
-- A stage comes with its own meta, or with none; what is null otherwise stays as it is.
UPDATE holdfast_tasks AS task
SET progress = coalesce(
        :changes::jsonb -> encode(uuid_send(id), 'hex') ->> 'progress', progress
    ),
    stage = coalesce(:changes::jsonb -> encode(uuid_send(id), 'hex') ->> 'stage', stage),
    stage_meta = CASE
        WHEN :changes::jsonb -> encode(uuid_send(id), 'hex') ->> 'stage' IS NOT NULL
            THEN :changes::jsonb -> encode(uuid_send(id), 'hex') ->> 'meta'
        ELSE coalesce(:changes::jsonb -> encode(uuid_send(id), 'hex') ->> 'meta', stage_meta)
    END,
    heartbeat_at = CASE
        WHEN (:changes::jsonb -> encode(uuid_send(id), 'hex') ->> 'beat')::bool THEN :now
        ELSE heartbeat_at
    END,
    output = CASE
        WHEN :changes::jsonb -> encode(uuid_send(id), 'hex') ->> 'output' IS NOT NULL
            THEN left(
                coalesce(output, '')
                || (:changes::jsonb -> encode(uuid_send(id), 'hex') ->> 'output'),
                :longest::int
            )
        ELSE output
    END,
    updated_at = :now
WHERE id = ANY (:changes_ids::uuid[])
    AND status = 'RUNNING'
    AND claim_token = (:changes::jsonb -> encode(uuid_send(id), 'hex') ->> 'token')::uuid
RETURNING id AS key;
