-- Retention of what operators did, in batches, the oldest first. Differs from PostgreSQL: the writer
-- is alone.
DELETE FROM holdfast_audit
WHERE id IN (
    SELECT id FROM (SELECT id, at FROM holdfast_audit ORDER BY id LIMIT :batch)
    WHERE at < :before
)
RETURNING id;
