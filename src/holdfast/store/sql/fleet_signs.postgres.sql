-- How the fleet stands, in numbers that cost nothing to read: leases and the one that ends first,
-- workers that are there and that have fallen silent, schedules and the one that is due the longest.
-- Differs from SQLite in its times.
SELECT
    :now,
    (SELECT count(*) FROM holdfast_leases),
    (SELECT min(expires_at) FROM holdfast_leases WHERE isfinite(expires_at)),
    worker.alive, worker.silent,
    (SELECT count(*) FROM holdfast_schedules WHERE paused_at IS NULL AND stopped_at IS NULL),
    (
        SELECT min(next_run_at) FROM holdfast_schedules
        WHERE paused_at IS NULL AND stopped_at IS NULL AND next_run_at <= :now
            AND isfinite(next_run_at)
    )
FROM (
    SELECT
        count(*) FILTER (WHERE is_alive) AS alive,
        count(*) FILTER (WHERE NOT is_alive) AS silent
    FROM (
        SELECT seen_at > :now - least(lease_us, 1000000000000) * interval '1 microsecond' AS is_alive
        FROM holdfast_workers
        WHERE stopped_at IS NULL
    ) AS remembered
) AS worker;
