-- How many checkpoints the server has made, by name, as text: since PostgreSQL 17 they are counted
-- here, before that in `database_facts`. Differs from SQLite, which has no server.
SELECT fact.name, fact.value
FROM pg_stat_checkpointer AS counted
CROSS JOIN LATERAL (
    VALUES
    ('timed_checkpoints', counted.num_timed::text),
    ('requested_checkpoints', counted.num_requested::text)
) AS fact (name, value);
