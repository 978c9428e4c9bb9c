-- Where the tasks of a name or a pattern go.
INSERT INTO holdfast_routes (pattern, queues, set_by, updated_at)
VALUES (:pattern, :queues, :set_by, :now)
ON CONFLICT (pattern) DO UPDATE
SET queues = excluded.queues, set_by = excluded.set_by, updated_at = excluded.updated_at;
