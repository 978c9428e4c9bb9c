-- Version 4: limits, concurrency keys, turns between keys.
-- Differs from PostgreSQL in types, in storage settings, and in the language of triggers. See
-- 0004.postgres.sql for what the tables are.

ALTER TABLE holdfast_tasks ADD COLUMN slots INTEGER NOT NULL DEFAULT 0;

DROP INDEX holdfast_tasks_claim;
CREATE INDEX holdfast_tasks_claim ON holdfast_tasks
    (queue_name, coalesce(concurrency_key, ''), priority, enqueued_at, id)
    WHERE ready;

ALTER TABLE holdfast_queues ADD COLUMN fair INTEGER NOT NULL DEFAULT 1;

DROP TABLE holdfast_limits;
DROP TABLE holdfast_keys;

CREATE TABLE holdfast_limits (
    scope      TEXT PRIMARY KEY,
    declared   TEXT,
    chosen     TEXT,
    chosen_by  TEXT,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_counters (
    scope      TEXT NOT NULL,
    place      INTEGER NOT NULL DEFAULT 0,
    held       INTEGER NOT NULL DEFAULT 0 CHECK (held >= 0),
    paid_until INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (scope, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_freed (
    scope TEXT NOT NULL,
    n     INTEGER NOT NULL
) STRICT;
CREATE INDEX holdfast_freed_scope ON holdfast_freed (scope);

CREATE TRIGGER holdfast_tasks_leave AFTER UPDATE OF claim_token ON holdfast_tasks
WHEN OLD.slots <> 0 AND OLD.claim_token IS NOT NULL AND NEW.claim_token IS NULL
BEGIN
    INSERT INTO holdfast_freed (scope, n)
    SELECT column2, 1
    FROM (VALUES
        (1, 'queue ' || OLD.queue_name),
        (2, 'task ' || OLD.task_name),
        (4, 'queue ' || OLD.queue_name || ' ' || OLD.concurrency_key),
        (8, 'task ' || OLD.task_name || ' ' || OLD.concurrency_key))
    WHERE OLD.slots & column1 AND column2 IS NOT NULL;
END;
CREATE TRIGGER holdfast_tasks_vanish AFTER DELETE ON holdfast_tasks
WHEN OLD.slots <> 0 AND OLD.claim_token IS NOT NULL
BEGIN
    INSERT INTO holdfast_freed (scope, n)
    SELECT column2, 1
    FROM (VALUES
        (1, 'queue ' || OLD.queue_name),
        (2, 'task ' || OLD.task_name),
        (4, 'queue ' || OLD.queue_name || ' ' || OLD.concurrency_key),
        (8, 'task ' || OLD.task_name || ' ' || OLD.concurrency_key))
    WHERE OLD.slots & column1 AND column2 IS NOT NULL;
END;
