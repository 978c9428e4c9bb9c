-- Pause a queue: nothing more is claimed from it. Differs from SQLite in its types.
INSERT INTO holdfast_queues (queue_name, paused_at, paused_by, updated_at)
VALUES (:queue_name, :now, :paused_by::text, :now)
ON CONFLICT (queue_name) DO UPDATE
SET paused_at = coalesce(holdfast_queues.paused_at, excluded.paused_at),
    paused_by = coalesce(holdfast_queues.paused_by, excluded.paused_by),
    updated_at = excluded.updated_at
RETURNING queue_name;
