-- Where a connection leads. The start of the server tells it from its replicas and copies. The
-- last column is the schema in which this connection finds the table.
-- Differs from SQLite, where a database is its file.
SELECT
    (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint,
    (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
    coalesce(to_regclass('holdfast_tasks')::oid::bigint, 0),
    coalesce(
        (
            SELECT nspname::text FROM pg_namespace WHERE oid = (
                SELECT relnamespace FROM pg_class WHERE oid = to_regclass('holdfast_tasks')
            )
        ),
        ''
    );
