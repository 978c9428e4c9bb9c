INSERT INTO holdfast_audit (at, actor, origin, verb, subject, filter, count, detail)
VALUES (:now, :actor, :origin, :verb, :subject, :filter, :count, :detail);
