-- Write down how deep queues are: for this minute, and the most for this hour. Differs from PostgreSQL
-- in how rows are bound.
INSERT INTO holdfast_depths AS depth (
    level, at, queue_name, pending, scheduled, claimed, running, dead, oldest_us
)
VALUES
    (
        'minute', :now / 60000000 * 60000000, :queue_name, :pending, :scheduled, :claimed,
        :running, :dead, :oldest_us
    ),
    (
        'hour', :now / 3600000000 * 3600000000, :queue_name, :pending, :scheduled, :claimed,
        :running, :dead, :oldest_us
    )
ON CONFLICT (level, at, queue_name) DO UPDATE
SET pending = max(depth.pending, excluded.pending),
    scheduled = max(depth.scheduled, excluded.scheduled),
    claimed = max(depth.claimed, excluded.claimed),
    running = max(depth.running, excluded.running),
    dead = max(depth.dead, excluded.dead),
    oldest_us = max(depth.oldest_us, excluded.oldest_us);
