-- How each table of ours is kept: live and dead rows, the last vacuum, whether autovacuum is on for
-- it. Differs from SQLite, which has no dead rows.
SELECT
    class.relname::text, stat.n_live_tup, stat.n_dead_tup,
    greatest(stat.last_vacuum, stat.last_autovacuum),
    coalesce('autovacuum_enabled=false' = ANY (class.reloptions), false)
FROM pg_class AS class
JOIN pg_stat_user_tables AS stat ON stat.relid = class.oid
WHERE starts_with(class.relname, 'holdfast_')
    AND class.relnamespace = (
        SELECT relnamespace FROM pg_class WHERE oid = to_regclass('holdfast_tasks'))
ORDER BY stat.n_dead_tup DESC, class.relname;
