-- Pause a queue: nothing more is claimed from it. Differs from PostgreSQL in its types.
INSERT INTO holdfast_queues (queue_name, paused_at, paused_by, updated_at)
VALUES (:queue_name, :now, :paused_by, :now)
ON CONFLICT (queue_name) DO UPDATE
SET paused_at = ifnull(holdfast_queues.paused_at, excluded.paused_at),
    paused_by = ifnull(holdfast_queues.paused_by, excluded.paused_by),
    updated_at = excluded.updated_at;
