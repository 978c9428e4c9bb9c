-- One page of what operators did, the newest first. Differs from PostgreSQL in its types.
SELECT id, at, actor, origin, verb, subject, filter, count, detail
FROM holdfast_audit
WHERE (:before_id IS NULL OR id < :before_id)
    AND (:actor IS NULL OR actor = :actor)
    AND (:verb IS NULL OR verb = :verb)
    AND (:subject IS NULL OR subject = :subject)
    AND (:since IS NULL OR at >= :since)
    AND (:until IS NULL OR at < :until)
ORDER BY id DESC
LIMIT :limit;
