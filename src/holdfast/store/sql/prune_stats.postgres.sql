-- Retention of counters, in batches. Differs from SQLite: rows are found by ctid, and those that
-- another transaction holds are left for the next time.
DELETE FROM holdfast_stats
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM holdfast_stats
    WHERE minute < :before::timestamptz ORDER BY minute LIMIT :batch::int
    FOR UPDATE SKIP LOCKED
))
RETURNING minute;
