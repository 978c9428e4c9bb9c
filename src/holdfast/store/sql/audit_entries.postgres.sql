-- One page of what operators did, the newest first. Differs from SQLite in its types.
SELECT id, at, actor, origin, verb, subject, filter, count, detail
FROM holdfast_audit
WHERE (:before_id::bigint IS NULL OR id < :before_id::bigint)
    AND (:actor::text IS NULL OR actor = :actor::text)
    AND (:verb::text IS NULL OR verb = :verb::text)
    AND (:subject::text IS NULL OR subject = :subject::text)
    AND (:since::timestamptz IS NULL OR at >= :since::timestamptz)
    AND (:until::timestamptz IS NULL OR at < :until::timestamptz)
ORDER BY id DESC
LIMIT :limit::int;
