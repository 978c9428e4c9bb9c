-- Retention of counters of one level, in batches. Differs from SQLite: rows are found by ctid, and
-- those that another transaction holds are left for the next time.
DELETE FROM holdfast_stats_series
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast_stats_series
    WHERE level = :level::text AND at < :before::timestamptz ORDER BY at LIMIT :batch::int
    FOR UPDATE SKIP LOCKED
))
RETURNING at;
