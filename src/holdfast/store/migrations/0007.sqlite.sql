-- Version 7: schedules, and what became of their ticks.
-- Differs from PostgreSQL in types. See 0007.postgres.sql for what the tables are.

DROP TABLE holdfast_schedules;
CREATE TABLE holdfast_schedules (
    schedule_name TEXT PRIMARY KEY,
    pattern       TEXT NOT NULL,
    timezone      TEXT NOT NULL,
    overlap       TEXT NOT NULL,
    missed        TEXT NOT NULL,
    max_missed    INTEGER NOT NULL,
    start_at      INTEGER,
    end_at        INTEGER,
    task_name     TEXT NOT NULL,
    version       INTEGER NOT NULL,
    payload       TEXT NOT NULL,
    declared      INTEGER NOT NULL,
    config_hash   TEXT NOT NULL,
    seen_hashes   TEXT NOT NULL,
    next_run_at   INTEGER,
    last_run_at   INTEGER,
    last_tick     INTEGER,
    last_task_id  TEXT,
    run_count     INTEGER NOT NULL DEFAULT 0,
    dropped_count INTEGER NOT NULL DEFAULT 0,
    has_waiting   INTEGER NOT NULL DEFAULT 0,
    paused_at     INTEGER,
    paused_by     TEXT,
    stopped_at    INTEGER,
    history_from  INTEGER,
    created_at    INTEGER NOT NULL,
    created_by    TEXT,
    updated_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_schedules_due ON holdfast_schedules (next_run_at)
    WHERE paused_at IS NULL AND stopped_at IS NULL;
CREATE INDEX holdfast_schedules_waiting ON holdfast_schedules (schedule_name)
    WHERE has_waiting AND paused_at IS NULL AND stopped_at IS NULL;

CREATE TABLE holdfast_schedule_ticks (
    schedule_name TEXT NOT NULL,
    tick          INTEGER NOT NULL,
    status        TEXT NOT NULL CHECK (status IN ('fired', 'waiting', 'dropped')),
    cause         TEXT NOT NULL,
    task_id       TEXT,
    noted_at      INTEGER NOT NULL,
    PRIMARY KEY (schedule_name, tick)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_schedule_ticks_noted ON holdfast_schedule_ticks (noted_at);

ALTER TABLE holdfast_workers ADD COLUMN schedules TEXT;
