-- Version 7: schedules, and what became of their ticks.
-- The table of version 1 was reserved and held nothing. The last digits of `seen_hashes` are the
-- definition in force; a definition that was seen before does not come back while another one is
-- declared by a live worker (`workers.schedules`).
-- Differs from SQLite in types.

DROP TABLE holdfast_schedules;
CREATE TABLE holdfast_schedules (
    schedule_name text COLLATE "C" PRIMARY KEY,
    pattern       text NOT NULL,
    timezone      text NOT NULL,
    overlap       text NOT NULL,
    missed        text NOT NULL,
    max_missed    integer NOT NULL,
    start_at      timestamptz,
    end_at        timestamptz,
    task_name     text NOT NULL,
    version       integer NOT NULL,
    payload       text NOT NULL,
    declared      boolean NOT NULL,
    config_hash   text NOT NULL,
    seen_hashes   text NOT NULL,
    next_run_at   timestamptz,
    last_run_at   timestamptz,
    last_tick     timestamptz,
    last_task_id  uuid,
    run_count     bigint NOT NULL DEFAULT 0,
    dropped_count bigint NOT NULL DEFAULT 0,
    has_waiting   boolean NOT NULL DEFAULT false,
    paused_at     timestamptz,
    paused_by     text,
    stopped_at    timestamptz,
    history_from  timestamptz,
    created_at    timestamptz NOT NULL,
    created_by    text,
    updated_at    timestamptz NOT NULL
);
CREATE INDEX holdfast_schedules_due ON holdfast_schedules (next_run_at)
    WHERE paused_at IS NULL AND stopped_at IS NULL;
CREATE INDEX holdfast_schedules_waiting ON holdfast_schedules (schedule_name)
    WHERE has_waiting AND paused_at IS NULL AND stopped_at IS NULL;

-- A tick is fired once: its row is written in the transaction that sends the task.
CREATE TABLE holdfast_schedule_ticks (
    schedule_name text COLLATE "C" NOT NULL,
    tick          timestamptz NOT NULL,
    status        text NOT NULL CHECK (status IN ('fired', 'waiting', 'dropped')),
    cause         text NOT NULL,
    task_id       uuid,
    noted_at      timestamptz NOT NULL,
    PRIMARY KEY (schedule_name, tick)
);
CREATE INDEX holdfast_schedule_ticks_noted ON holdfast_schedule_ticks (noted_at);

-- JSON: the schedules that its code declares, each with the hash of its definition.
ALTER TABLE holdfast_workers ADD COLUMN schedules text;
