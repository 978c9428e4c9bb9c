-- Routes: to which queues tasks go, by their names.
-- Differs from PostgreSQL in its types. See 0008.postgres.sql for what the columns are.

CREATE TABLE holdfast_routes (
    pattern    TEXT PRIMARY KEY,
    queues     TEXT NOT NULL,
    set_by     TEXT,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
