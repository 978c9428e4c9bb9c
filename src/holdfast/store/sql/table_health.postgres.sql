-- How each table of ours is kept: live and dead rows, the last vacuum, whether autovacuum is on for
-- it. A table is named as VACUUM needs it by whoever has another search path. Options are stored as
-- they were written: off, false, no. Differs from SQLite, which has no dead rows.
SELECT
    CASE WHEN space.nspname = 'public' THEN class.relname::text
         ELSE format('%I.%I', space.nspname, class.relname) END,
    stat.n_live_tup, stat.n_dead_tup,
    greatest(stat.last_vacuum, stat.last_autovacuum),
    coalesce((
        SELECT NOT said.option_value::boolean FROM pg_options_to_table(class.reloptions) AS said
        WHERE said.option_name = 'autovacuum_enabled'), false)
FROM pg_class AS class
JOIN pg_namespace AS space ON space.oid = class.relnamespace
JOIN pg_stat_user_tables AS stat ON stat.relid = class.oid
WHERE starts_with(class.relname, 'holdfast_')
    AND class.relnamespace = (
        SELECT relnamespace FROM pg_class WHERE oid = to_regclass('holdfast_tasks'))
ORDER BY stat.n_dead_tup DESC, class.relname;
