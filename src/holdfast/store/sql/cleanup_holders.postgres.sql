-- What keeps the server from removing dead rows: transactions that have been open since before
-- :before, prepared ones, and replication slots, which also keep the WAL. Differs from SQLite, where
-- there is none of it. Sessions of other users are only seen with the rights of pg_read_all_stats.
SELECT
    'transaction', activity.pid, activity.usename::text, activity.application_name,
    activity.state, activity.xact_start, activity.backend_xmin IS NOT NULL, NULL::bigint
FROM pg_stat_activity AS activity
WHERE activity.xact_start < :before::timestamptz
    AND activity.datname = current_database()
    AND activity.pid <> pg_backend_pid()
    AND activity.backend_type = 'client backend'
UNION ALL
SELECT
    'prepared', NULL, prepared.owner::text, prepared.gid,
    'prepared', prepared.prepared, true, NULL
FROM pg_prepared_xacts AS prepared
WHERE prepared.prepared < :before::timestamptz
    AND prepared.database = current_database()
UNION ALL
SELECT
    'slot', slot.active_pid, NULL, slot.slot_name::text,
    CASE WHEN slot.active THEN 'active' ELSE 'inactive' END, NULL,
    slot.xmin IS NOT NULL OR slot.catalog_xmin IS NOT NULL,
    CASE
        WHEN pg_is_in_recovery() THEN NULL
        ELSE pg_wal_lsn_diff(pg_current_wal_lsn(), slot.restart_lsn)::bigint
    END
FROM pg_replication_slots AS slot
WHERE NOT slot.active
ORDER BY 6 NULLS LAST, 2;
