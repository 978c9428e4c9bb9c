-- Version 1: every table of Holdfast.
-- Differs from PostgreSQL in its types: ids are the 36 characters of a uuid, times and durations
-- integer microseconds, flags 0 and 1. A task also has an integer key `seq`: rows that belong to a
-- task, and a worker's writes, use it, because a second lookup through a text key costs a third of
-- the rate. See 0001.postgres.sql for why the indexes are these.

CREATE TABLE holdfast_tasks (
    seq                  INTEGER PRIMARY KEY,
    id                   TEXT NOT NULL UNIQUE,
    task_name            TEXT NOT NULL,
    version              INTEGER NOT NULL,
    queue_name           TEXT NOT NULL,
    priority             INTEGER NOT NULL CHECK (priority BETWEEN 1 AND 100),
    status               TEXT NOT NULL,
    ready                INTEGER NOT NULL,
    args                 TEXT NOT NULL,
    kwargs               TEXT NOT NULL,
    task_options         TEXT,
    tags                 TEXT,
    enqueue_sha          TEXT NOT NULL,

    sent_at              INTEGER NOT NULL,
    created_at           INTEGER NOT NULL,
    updated_at           INTEGER NOT NULL,
    enqueued_at          INTEGER NOT NULL,
    run_at               INTEGER,
    due_at               INTEGER,
    good_until           INTEGER,
    good_for_us          INTEGER,
    expire_at            INTEGER,

    claim_token          TEXT,
    claimed_at           INTEGER,
    claimed_by_worker_id TEXT,
    started_at           INTEGER,
    first_started_at     INTEGER,
    retried_at           INTEGER,
    heartbeat_at         INTEGER,
    cancel_requested_at  INTEGER,
    worker_pid           INTEGER,
    worker_hostname      TEXT,
    worker_process_name  TEXT,

    attempt              INTEGER NOT NULL DEFAULT 0,
    retry_count          INTEGER NOT NULL DEFAULT 0,
    max_retries          INTEGER NOT NULL DEFAULT 0,
    crash_count          INTEGER NOT NULL DEFAULT 0,
    next_retry_at        INTEGER,

    finished_at          INTEGER,
    completed_at         INTEGER,
    failed_at            INTEGER,
    result               TEXT,
    error_code           TEXT,
    failed_reason        TEXT,
    dead                 INTEGER,

    unique_key           TEXT,
    unique_slot          TEXT,
    concurrency_key      TEXT,
    workflow_id          TEXT,
    deps_needed          INTEGER NOT NULL DEFAULT 0,
    deps_open            INTEGER NOT NULL DEFAULT 0,
    parent_id            TEXT,
    root_id              TEXT,
    schedule_name        TEXT,
    schedule_tick        INTEGER,
    trace_context        TEXT,

    CONSTRAINT holdfast_tasks_status CHECK (status IN (
        'WAITING', 'SCHEDULED', 'PENDING', 'CLAIMED', 'RUNNING',
        'COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED', 'STALLED', 'DROPPED')),
    CONSTRAINT holdfast_tasks_token
        CHECK ((claim_token IS NOT NULL) = (status IN ('CLAIMED', 'RUNNING'))),
    CONSTRAINT holdfast_tasks_ready CHECK (ready = (status = 'PENDING')),
    CONSTRAINT holdfast_tasks_due CHECK ((due_at IS NOT NULL) = (status = 'SCHEDULED')),
    CONSTRAINT holdfast_tasks_finished CHECK ((finished_at IS NOT NULL) = (status IN (
        'COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED', 'STALLED', 'DROPPED'))),
    CONSTRAINT holdfast_tasks_error CHECK ((error_code IS NOT NULL) = (status IN (
        'FAILED', 'CANCELLED', 'EXPIRED', 'STALLED', 'DROPPED'))),
    -- Against rows that are written by hand; what these let through is still read with care. (Not
    -- whether arguments are JSON: that costs more than a microsecond a send.)
    CONSTRAINT holdfast_tasks_id CHECK (length(id) = 36 AND id NOT GLOB '*[^0-9a-f-]*'),
    CONSTRAINT holdfast_tasks_names CHECK (
        length(task_name) BETWEEN 1 AND 255 AND length(queue_name) BETWEEN 1 AND 100),
    CONSTRAINT holdfast_tasks_counters CHECK (
        attempt BETWEEN 0 AND 2147483647 AND retry_count BETWEEN 0 AND 2147483647
        AND crash_count BETWEEN 0 AND 2147483647 AND max_retries BETWEEN 0 AND 2147483647),
    CONSTRAINT holdfast_tasks_times CHECK (
        enqueued_at < 253402300800000000 AND created_at < 253402300800000000),
    CONSTRAINT holdfast_tasks_lengths CHECK (
        length(task_options) <= 10000000 AND length(trace_context) <= 10000000)
) STRICT;

CREATE INDEX holdfast_tasks_claim ON holdfast_tasks (queue_name, priority, enqueued_at, id)
    WHERE ready;
CREATE INDEX holdfast_tasks_due ON holdfast_tasks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX holdfast_tasks_due_of ON holdfast_tasks (queue_name, due_at)
    WHERE due_at IS NOT NULL;
CREATE INDEX holdfast_tasks_expire ON holdfast_tasks (expire_at) WHERE expire_at IS NOT NULL;
CREATE UNIQUE INDEX holdfast_tasks_unique ON holdfast_tasks (unique_slot)
    WHERE unique_slot IS NOT NULL;
CREATE INDEX holdfast_tasks_own ON holdfast_tasks (created_at, id)
    WHERE substr(id, 15, 1) <> '7';
CREATE INDEX holdfast_tasks_dead ON holdfast_tasks (queue_name, id) WHERE dead;
CREATE INDEX holdfast_tasks_dead_all ON holdfast_tasks (id) WHERE dead;
CREATE INDEX holdfast_tasks_error ON holdfast_tasks (error_code, id) WHERE error_code IS NOT NULL;
CREATE INDEX holdfast_tasks_workflow ON holdfast_tasks (workflow_id, id)
    WHERE workflow_id IS NOT NULL;

CREATE TABLE holdfast_leases (
    token      TEXT PRIMARY KEY CHECK (length(token) = 36),
    worker_id  TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    task_ids   TEXT NOT NULL CHECK (json_valid(task_ids))
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_task_attempts (
    task_seq            INTEGER NOT NULL,
    attempt             INTEGER NOT NULL,
    outcome             TEXT NOT NULL CHECK (outcome IN (
        'COMPLETED', 'FAILED', 'WORKER_FAILURE', 'CANCELLED', 'STALLED', 'SNOOZED', 'INTERRUPTED')),
    will_retry          INTEGER NOT NULL,
    claim_token         TEXT NOT NULL,
    started_at          INTEGER NOT NULL,
    finished_at         INTEGER NOT NULL,
    error_code          TEXT,
    error_message       TEXT,
    failed_reason       TEXT,
    error               TEXT,
    worker_id           TEXT,
    worker_hostname     TEXT,
    worker_pid          INTEGER,
    worker_process_name TEXT,
    exit_code           INTEGER,
    exit_signal         INTEGER,
    peak_memory_kb      INTEGER,
    cpu_time_us         INTEGER,
    created_at          INTEGER NOT NULL,
    PRIMARY KEY (task_seq, attempt)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_task_attempts_error ON holdfast_task_attempts (error_code)
    WHERE error_code IS NOT NULL;

-- What a running task says about itself. Not in its own row, for the sake of PostgreSQL, which
-- says why.
CREATE TABLE holdfast_task_notes (
    task_seq     INTEGER PRIMARY KEY,
    progress     TEXT,
    stage        TEXT,
    stage_meta   TEXT,
    output       TEXT,
    heartbeat_at INTEGER,
    updated_at   INTEGER NOT NULL
) STRICT;

CREATE TABLE holdfast_task_logs (
    task_seq   INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    part       INTEGER NOT NULL,
    written_at INTEGER NOT NULL,
    data       BLOB NOT NULL,
    PRIMARY KEY (task_seq, attempt, part)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_checkpoints (
    task_seq   INTEGER NOT NULL,
    name       TEXT NOT NULL,
    value      TEXT NOT NULL,
    attempt    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (task_seq, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_task_dependencies (
    parent_id TEXT NOT NULL,
    child_id  TEXT NOT NULL,
    on_status TEXT NOT NULL CHECK (on_status IN ('success', 'failure', 'always')),
    resolved  INTEGER NOT NULL DEFAULT 0,
    satisfied INTEGER,
    PRIMARY KEY (parent_id, child_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX holdfast_task_dependencies_child ON holdfast_task_dependencies (child_id);

CREATE TABLE holdfast_workers (
    worker_id  TEXT PRIMARY KEY,
    hostname   TEXT NOT NULL,
    pid        INTEGER NOT NULL,
    version    TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    stopped_at INTEGER,
    lease_us   INTEGER NOT NULL,
    queues     TEXT NOT NULL,
    known      TEXT NOT NULL,
    settings   TEXT NOT NULL,
    command    TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_worker_states (
    worker_id             TEXT NOT NULL,
    snapshot_at           INTEGER NOT NULL,
    hostname              TEXT NOT NULL,
    pid                   INTEGER NOT NULL,
    processes             INTEGER NOT NULL,
    queues                TEXT NOT NULL,
    tasks_running         INTEGER NOT NULL,
    tasks_claimed         INTEGER NOT NULL,
    memory_usage_mb       REAL,
    memory_percent        REAL,
    cpu_percent           REAL,
    max_claim_batch       INTEGER,
    max_claim_per_worker  INTEGER,
    cluster_wide_cap      INTEGER,
    queue_priorities      TEXT,
    queue_max_concurrency TEXT,
    recovery_config       TEXT,
    worker_started_at     INTEGER NOT NULL,
    PRIMARY KEY (worker_id, snapshot_at)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_queues (
    queue_name TEXT PRIMARY KEY,
    paused_at  INTEGER,
    paused_by  TEXT,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Reserved for rate and concurrency limits: no code reads or writes it yet.
CREATE TABLE holdfast_limits (
    limit_name  TEXT PRIMARY KEY,
    capacity    INTEGER NOT NULL,
    period_us   INTEGER,
    tokens      REAL NOT NULL,
    refilled_at INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Reserved for concurrency keys: no code reads or writes it yet.
CREATE TABLE holdfast_keys (
    concurrency_key TEXT PRIMARY KEY,
    held            INTEGER NOT NULL,
    capacity        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Reserved for periodic tasks: no code reads or writes it yet.
CREATE TABLE holdfast_schedules (
    schedule_name TEXT PRIMARY KEY,
    task_name     TEXT NOT NULL,
    version       INTEGER NOT NULL,
    pattern       TEXT NOT NULL,
    timezone      TEXT NOT NULL,
    payload       TEXT NOT NULL,
    enabled       INTEGER NOT NULL,
    next_run_at   INTEGER,
    last_run_at   INTEGER,
    last_task_id  TEXT,
    run_count     INTEGER NOT NULL DEFAULT 0,
    config_hash   TEXT NOT NULL,
    updated_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_workflows (
    workflow_id   TEXT PRIMARY KEY,
    workflow_name TEXT NOT NULL,
    status        TEXT NOT NULL,
    definition    TEXT NOT NULL,
    result        TEXT,
    error_code    TEXT,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    paused_at     INTEGER,
    finished_at   INTEGER,
    parent_id     TEXT,
    root_id       TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_stats (
    minute     INTEGER NOT NULL,
    worker_id  TEXT NOT NULL,
    queue_name TEXT NOT NULL,
    task_name  TEXT NOT NULL,
    completed  INTEGER NOT NULL DEFAULT 0,
    failed     INTEGER NOT NULL DEFAULT 0,
    retried    INTEGER NOT NULL DEFAULT 0,
    other      INTEGER NOT NULL DEFAULT 0,
    wait_us    INTEGER NOT NULL DEFAULT 0,
    run_us     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (minute, worker_id, queue_name, task_name)
) STRICT, WITHOUT ROWID;

-- Reserved for a record of what operators do: no code reads or writes it yet.
CREATE TABLE holdfast_audit (
    id         INTEGER PRIMARY KEY,
    at         INTEGER NOT NULL,
    actor      TEXT NOT NULL,
    verb       TEXT NOT NULL,
    subject    TEXT NOT NULL,
    detail     TEXT
) STRICT;

CREATE TABLE holdfast_meta (
    name  TEXT PRIMARY KEY,
    value TEXT,
    at    INTEGER
) STRICT, WITHOUT ROWID;
