-- Pause a queue: nothing more is claimed from it. Differs from SQLite: the hint leaves with the
-- commit.
INSERT INTO holdfast_queues (queue_name, paused_at, paused_by, updated_at)
VALUES (:queue_name, :now, :paused_by::text, :now)
ON CONFLICT (queue_name) DO UPDATE
SET paused_at = coalesce(holdfast_queues.paused_at, excluded.paused_at),
    paused_by = coalesce(holdfast_queues.paused_by, excluded.paused_by),
    updated_at = excluded.updated_at
RETURNING
    queue_name,
    (SELECT count(pg_notify(:hint_channel, p)) FROM unnest(:hint_payloads::text[]) AS p);
