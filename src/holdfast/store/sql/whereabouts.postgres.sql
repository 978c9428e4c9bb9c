-- Where a connection leads. The start of the server tells it from its replicas and copies, and the
-- table is the one that this connection's search_path finds.
-- Differs from SQLite, where a database is its file.
SELECT
    (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint,
    (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
    coalesce(to_regclass('holdfast_tasks')::oid::bigint, 0);
