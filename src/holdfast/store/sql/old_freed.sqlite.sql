-- Scopes of which something came free that nobody has subtracted yet.
-- Differs from PostgreSQL in types.
SELECT DISTINCT scope FROM holdfast_freed ORDER BY scope LIMIT :batch;
