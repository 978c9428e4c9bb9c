-- Retention of what operators did, in batches, the oldest first. Differs from SQLite: rows that
-- another transaction holds are left for the next time.
DELETE FROM holdfast_audit
WHERE id = ANY (ARRAY(
    SELECT id FROM (
        SELECT id, at FROM holdfast_audit ORDER BY id LIMIT :batch::int FOR UPDATE SKIP LOCKED
    ) AS oldest
    WHERE at < :before::timestamptz
))
RETURNING id;
