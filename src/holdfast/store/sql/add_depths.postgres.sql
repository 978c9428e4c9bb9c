-- Write down how deep queues are: for this minute, and the most for this hour. Differs from SQLite in
-- how rows are bound.
INSERT INTO holdfast_depths AS depth (
    level, at, queue_name, pending, scheduled, claimed, running, dead, oldest_us
)
SELECT
    step.level, date_trunc(step.level, :now, 'UTC'), row.queue_name, row.pending, row.scheduled,
    row.claimed, row.running, row.dead, row.oldest_us
FROM
    unnest(
        :queue_name::text[], :pending::bigint[], :scheduled::bigint[], :claimed::bigint[],
        :running::bigint[], :dead::bigint[], :oldest_us::bigint[]
    ) AS row (queue_name, pending, scheduled, claimed, running, dead, oldest_us)
CROSS JOIN (VALUES ('minute'), ('hour')) AS step (level)
ORDER BY 1, 2, 3
ON CONFLICT (level, at, queue_name) DO UPDATE
SET pending = greatest(depth.pending, excluded.pending),
    scheduled = greatest(depth.scheduled, excluded.scheduled),
    claimed = greatest(depth.claimed, excluded.claimed),
    running = greatest(depth.running, excluded.running),
    dead = greatest(depth.dead, excluded.dead),
    oldest_us = greatest(depth.oldest_us, excluded.oldest_us);
