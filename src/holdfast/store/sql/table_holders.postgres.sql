-- Who has locked a table of ours against writing: LOCK TABLE, CREATE INDEX, VACUUM FULL, an ALTER
-- TABLE that is not committed. Reads no table of ours: whoever did would wait with all the others.
-- Differs from SQLite, where there are no locks of tables.
SELECT
    class.relname::text, lock.mode, lock.pid, prepared.gid, activity.usename::text,
    activity.application_name, activity.state, activity.xact_start
FROM pg_locks AS lock
JOIN pg_class AS class ON class.oid = lock.relation
LEFT JOIN pg_stat_activity AS activity ON activity.pid = lock.pid
LEFT JOIN pg_prepared_xacts AS prepared
    ON lock.pid IS NULL AND lock.virtualtransaction = '-1/' || prepared.transaction::text
WHERE lock.locktype = 'relation'
    AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND lock.granted
    AND lock.mode IN (
        'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
    AND class.relkind = 'r'
    AND starts_with(class.relname, 'holdfast_')
    AND class.relnamespace = (
        SELECT relnamespace FROM pg_class WHERE oid = to_regclass('holdfast_tasks'))
ORDER BY activity.xact_start NULLS LAST, lock.pid, class.relname;
