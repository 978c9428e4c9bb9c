-- What the server says about itself, by name, as text. Differs from SQLite: other facts.
-- What is not allowed to be read is null.
SELECT fact.name, fact.value
FROM (
    VALUES
    ('version', current_setting('server_version')),
    ('fsync', current_setting('fsync')),
    ('full_page_writes', current_setting('full_page_writes')),
    ('synchronous_commit', current_setting('synchronous_commit')),
    ('read_only', (current_setting('transaction_read_only')::boolean OR pg_is_in_recovery())::text),
    ('autovacuum', current_setting('autovacuum')),
    ('track_counts', current_setting('track_counts')),
    ('max_connections', current_setting('max_connections')),
    ('reserved_connections', current_setting('superuser_reserved_connections')),
    ('used_connections', (
        SELECT count(*)::text FROM pg_stat_activity WHERE backend_type = 'client backend')),
    ('hidden_sessions', (
        SELECT count(*)::text FROM pg_stat_activity
        WHERE query = '<insufficient privilege>' AND datname = current_database())),
    ('transaction_age', (
        SELECT age(datfrozenxid)::text FROM pg_database WHERE datname = current_database())),
    ('freeze_max_age', current_setting('autovacuum_freeze_max_age')),
    ('database_bytes', pg_database_size(current_database())::text),
    ('timed_checkpoints', (
        SELECT to_jsonb(writer) ->> 'checkpoints_timed' FROM pg_stat_bgwriter AS writer)),
    ('requested_checkpoints', (
        SELECT to_jsonb(writer) ->> 'checkpoints_req' FROM pg_stat_bgwriter AS writer)),
    ('max_wal_size', current_setting('max_wal_size')),
    ('failed_archiving', (
        SELECT last_failed_wal FROM pg_stat_archiver
        WHERE last_failed_time > coalesce(last_archived_time, '-infinity'))),
    ('is_near', (inet_server_addr() IS NULL OR inet_server_addr() = inet_client_addr())::text),
    ('data_directory', (SELECT setting FROM pg_settings WHERE name = 'data_directory'))
) AS fact (name, value);
