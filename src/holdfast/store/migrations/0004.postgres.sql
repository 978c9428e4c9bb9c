-- Version 4: limits, concurrency keys, turns between keys.
-- What a task gives back when it leaves goes into a ledger, insert only, so that nobody who ends a
-- task ever waits for a counter; the next claim folds it in.
-- Differs from SQLite in types, in storage settings, and in the language of triggers.

-- Order of keys is bytewise on both engines.
ALTER TABLE holdfast_tasks ALTER COLUMN concurrency_key TYPE text COLLATE "C";
-- Which counters this claim has taken one of: 1 queue, 2 task, 4 key in the queue, 8 key of the
-- task. Written by every claim; means nothing without a token.
ALTER TABLE holdfast_tasks ADD COLUMN slots smallint NOT NULL DEFAULT 0;

-- Tasks with a key stand apart from those without in the same index, key by key: however many
-- wait for one key, a claim of others never meets them.
DROP INDEX holdfast_tasks_claim;
CREATE INDEX holdfast_tasks_claim ON holdfast_tasks
    (queue_name, (coalesce(concurrency_key, '')), priority, enqueued_at, id)
    WHERE ready;

ALTER TABLE holdfast_queues ADD COLUMN fair boolean NOT NULL DEFAULT true;

DROP TABLE holdfast_limits;
DROP TABLE holdfast_keys;

-- The rules. `scope` is `queue NAME` or `task NAME`; both texts are JSON lists of limits.
CREATE TABLE holdfast_limits (
    scope      text COLLATE "C" PRIMARY KEY,
    declared   text,
    chosen     text,
    chosen_by  text,
    updated_at timestamptz NOT NULL
);

-- The counters of the rules; `scope` as above, or `queue NAME KEY` and `task NAME KEY`. A rule of
-- several rates has several rows; `held` counts in the first.
CREATE TABLE holdfast_counters (
    scope      text COLLATE "C" NOT NULL,
    place      smallint NOT NULL DEFAULT 0,
    held       integer NOT NULL DEFAULT 0 CHECK (held >= 0),
    paid_until timestamptz NOT NULL DEFAULT 'epoch',
    PRIMARY KEY (scope, place)
) WITH (
    fillfactor = 20,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0
);

-- What came free and is not yet subtracted from `held`.
CREATE TABLE holdfast_freed (
    scope text COLLATE "C" NOT NULL,
    n     integer NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX holdfast_freed_scope ON holdfast_freed (scope);

-- Whatever ends a claim frees its slots, also a statement of somebody's own: this is not left to
-- the verbs. What has no slots pays for the comparison only. (The search_path is that of the
-- migration: a task may be ended on a connection that has another.)
CREATE FUNCTION holdfast_free_slots() RETURNS trigger LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
    INSERT INTO holdfast_freed (scope, n)
    SELECT held.scope, 1
    FROM (VALUES
        (1, 'queue ' || OLD.queue_name),
        (2, 'task ' || OLD.task_name),
        (4, 'queue ' || OLD.queue_name || ' ' || OLD.concurrency_key),
        (8, 'task ' || OLD.task_name || ' ' || OLD.concurrency_key)
    ) AS held (bit, scope)
    WHERE OLD.slots & held.bit <> 0 AND held.scope IS NOT NULL;
    RETURN NULL;
END
$$;
CREATE TRIGGER holdfast_tasks_leave AFTER UPDATE OF claim_token ON holdfast_tasks
    FOR EACH ROW
    WHEN (OLD.slots <> 0 AND OLD.claim_token IS NOT NULL AND NEW.claim_token IS NULL)
    EXECUTE FUNCTION holdfast_free_slots();
CREATE TRIGGER holdfast_tasks_vanish AFTER DELETE ON holdfast_tasks
    FOR EACH ROW
    WHEN (OLD.slots <> 0 AND OLD.claim_token IS NOT NULL)
    EXECUTE FUNCTION holdfast_free_slots();
