-- Version 1: every table of Holdfast.
-- Differs from SQLite in its types (uuid, timestamptz, arrays), in storage settings, and in
-- holdfast_now(), which SQLite binds as a parameter.
--
-- No index names a column that `start`, `complete`, progress or heartbeat changes: one that does
-- takes heap-only updates from 92 % to none. No foreign key points at holdfast_tasks: it costs a
-- quarter of every finish; prune and delete remove the rows of a task with the task.

-- The time of the statement, not of the transaction (which may be old) and not of the moment
-- (which would give the columns of one row different times).
CREATE FUNCTION holdfast_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
AS 'SELECT statement_timestamp()';

CREATE TABLE holdfast_tasks (
    id                   uuid PRIMARY KEY,
    task_name            text NOT NULL,
    version              integer NOT NULL,
    queue_name           text NOT NULL,
    priority             smallint NOT NULL CHECK (priority BETWEEN 1 AND 100),
    status               text NOT NULL,
    ready                boolean NOT NULL,
    args                 text NOT NULL,
    kwargs               text NOT NULL,
    task_options         text,
    tags                 text,
    enqueue_sha          text NOT NULL,

    sent_at              timestamptz NOT NULL,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    enqueued_at          timestamptz NOT NULL,
    run_at               timestamptz,
    due_at               timestamptz,
    good_until           timestamptz,
    good_for_us          bigint,
    expire_at            timestamptz,

    claim_token          uuid,
    claimed_at           timestamptz,
    claimed_by_worker_id text,
    started_at           timestamptz,
    first_started_at     timestamptz,
    retried_at           timestamptz,
    heartbeat_at         timestamptz,
    cancel_requested_at  timestamptz,
    worker_pid           integer,
    worker_hostname      text,
    worker_process_name  text,

    attempt              integer NOT NULL DEFAULT 0,
    retry_count          integer NOT NULL DEFAULT 0,
    max_retries          integer NOT NULL DEFAULT 0,
    crash_count          integer NOT NULL DEFAULT 0,
    next_retry_at        timestamptz,

    finished_at          timestamptz,
    completed_at         timestamptz,
    failed_at            timestamptz,
    result               text,
    error_code           text,
    failed_reason        text,
    dead                 boolean,

    unique_key           text,
    unique_slot          text,
    concurrency_key      text,
    workflow_id          uuid,
    deps_needed          integer NOT NULL DEFAULT 0,
    deps_open            integer NOT NULL DEFAULT 0,
    parent_id            uuid,
    root_id              uuid,
    schedule_name        text,
    schedule_tick        timestamptz,
    trace_context        text,

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
    -- Against rows that are written by hand; what these let through is still read with care. Few,
    -- because every change of a row checks all of them.
    CONSTRAINT holdfast_tasks_names CHECK (
        length(task_name) BETWEEN 1 AND 255 AND length(queue_name) BETWEEN 1 AND 100),
    CONSTRAINT holdfast_tasks_times CHECK (isfinite(enqueued_at) AND isfinite(created_at)),
    CONSTRAINT holdfast_tasks_lengths CHECK (
        octet_length(task_options) <= 10000000 AND octet_length(trace_context) <= 10000000)
) WITH (
    fillfactor = 60,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1
);

CREATE INDEX holdfast_tasks_claim ON holdfast_tasks (queue_name, priority, enqueued_at, id)
    WHERE ready;
CREATE INDEX holdfast_tasks_due ON holdfast_tasks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX holdfast_tasks_due_of ON holdfast_tasks (queue_name, due_at)
    WHERE due_at IS NOT NULL;
CREATE INDEX holdfast_tasks_expire ON holdfast_tasks (expire_at) WHERE expire_at IS NOT NULL;
CREATE UNIQUE INDEX holdfast_tasks_unique ON holdfast_tasks (unique_slot)
    WHERE unique_slot IS NOT NULL;
-- Ids that callers make have no time in them; lists find the newest of these here.
CREATE INDEX holdfast_tasks_own ON holdfast_tasks (created_at, id)
    WHERE (get_byte(uuid_send(id), 6) >> 4) <> 7;
CREATE INDEX holdfast_tasks_dead ON holdfast_tasks (queue_name, id) WHERE dead;
CREATE INDEX holdfast_tasks_dead_all ON holdfast_tasks (id) WHERE dead;
CREATE INDEX holdfast_tasks_error ON holdfast_tasks (error_code, id) WHERE error_code IS NOT NULL;
CREATE INDEX holdfast_tasks_workflow ON holdfast_tasks (workflow_id, id)
    WHERE workflow_id IS NOT NULL;

CREATE TABLE holdfast_leases (
    token      uuid PRIMARY KEY,
    worker_id  text NOT NULL,
    expires_at timestamptz NOT NULL,
    task_ids   uuid[] NOT NULL
        CHECK (array_ndims(task_ids) = 1 AND array_position(task_ids, NULL) IS NULL)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0
);

CREATE TABLE holdfast_task_attempts (
    task_id             uuid NOT NULL,
    attempt             integer NOT NULL,
    outcome             text NOT NULL CHECK (outcome IN (
        'COMPLETED', 'FAILED', 'WORKER_FAILURE', 'CANCELLED', 'STALLED', 'SNOOZED', 'INTERRUPTED')),
    will_retry          boolean NOT NULL,
    claim_token         uuid NOT NULL,
    started_at          timestamptz NOT NULL,
    finished_at         timestamptz NOT NULL,
    error_code          text,
    error_message       text,
    failed_reason       text,
    error               text,
    worker_id           text,
    worker_hostname     text,
    worker_pid          integer,
    worker_process_name text,
    exit_code           integer,
    exit_signal         integer,
    peak_memory_kb      bigint,
    cpu_time_us         bigint,
    created_at          timestamptz NOT NULL,
    PRIMARY KEY (task_id, attempt)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX holdfast_task_attempts_error ON holdfast_task_attempts (error_code)
    WHERE error_code IS NOT NULL;
CREATE INDEX holdfast_task_attempts_finished ON holdfast_task_attempts USING brin (finished_at);

-- What a running task says about itself. Not in its own row: a transaction of the task's code that
-- sees the past (REPEATABLE READ) could not complete the task once that row had changed.
CREATE TABLE holdfast_task_notes (
    task_id      uuid PRIMARY KEY,
    progress     text,
    stage        text,
    stage_meta   text,
    output       text,
    heartbeat_at timestamptz,
    updated_at   timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE holdfast_task_logs (
    task_id    uuid NOT NULL,
    attempt    integer NOT NULL,
    part       integer NOT NULL,
    written_at timestamptz NOT NULL,
    data       bytea NOT NULL,
    PRIMARY KEY (task_id, attempt, part)
);

CREATE TABLE holdfast_checkpoints (
    task_id    uuid NOT NULL,
    name       text NOT NULL,
    value      text NOT NULL,
    attempt    integer NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (task_id, name)
);

CREATE TABLE holdfast_task_dependencies (
    parent_id uuid NOT NULL,
    child_id  uuid NOT NULL,
    on_status text NOT NULL CHECK (on_status IN ('success', 'failure', 'always')),
    resolved  boolean NOT NULL DEFAULT false,
    satisfied boolean,
    PRIMARY KEY (parent_id, child_id)
);
CREATE INDEX holdfast_task_dependencies_child ON holdfast_task_dependencies (child_id);

CREATE TABLE holdfast_workers (
    worker_id  text PRIMARY KEY,
    hostname   text NOT NULL,
    pid        integer NOT NULL,
    version    text NOT NULL,
    started_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL,
    stopped_at timestamptz,
    lease_us   bigint NOT NULL,
    queues     text NOT NULL,
    known      text NOT NULL,
    settings   text NOT NULL,
    command    text
);

CREATE TABLE holdfast_worker_states (
    worker_id             text NOT NULL,
    snapshot_at           timestamptz NOT NULL,
    hostname              text NOT NULL,
    pid                   integer NOT NULL,
    processes             integer NOT NULL,
    queues                text NOT NULL,
    tasks_running         integer NOT NULL,
    tasks_claimed         integer NOT NULL,
    memory_usage_mb       double precision,
    memory_percent        double precision,
    cpu_percent           double precision,
    max_claim_batch       integer,
    max_claim_per_worker  integer,
    cluster_wide_cap      integer,
    queue_priorities      text,
    queue_max_concurrency text,
    recovery_config       text,
    worker_started_at     timestamptz NOT NULL,
    PRIMARY KEY (worker_id, snapshot_at)
);
CREATE INDEX holdfast_worker_states_at ON holdfast_worker_states USING brin (snapshot_at);

CREATE TABLE holdfast_queues (
    queue_name text PRIMARY KEY,
    paused_at  timestamptz,
    paused_by  text,
    updated_at timestamptz NOT NULL
);

-- Reserved for rate and concurrency limits: no code reads or writes it yet.
CREATE TABLE holdfast_limits (
    limit_name  text PRIMARY KEY,
    capacity    integer NOT NULL,
    period_us   bigint,
    tokens      double precision NOT NULL,
    refilled_at timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL
);

-- Reserved for concurrency keys: no code reads or writes it yet.
CREATE TABLE holdfast_keys (
    concurrency_key text PRIMARY KEY,
    held            integer NOT NULL,
    capacity        integer NOT NULL
);

-- Reserved for periodic tasks: no code reads or writes it yet.
CREATE TABLE holdfast_schedules (
    schedule_name text PRIMARY KEY,
    task_name     text NOT NULL,
    version       integer NOT NULL,
    pattern       text NOT NULL,
    timezone      text NOT NULL,
    payload       text NOT NULL,
    enabled       boolean NOT NULL,
    next_run_at   timestamptz,
    last_run_at   timestamptz,
    last_task_id  uuid,
    run_count     bigint NOT NULL DEFAULT 0,
    config_hash   text NOT NULL,
    updated_at    timestamptz NOT NULL
);

CREATE TABLE holdfast_workflows (
    workflow_id   uuid PRIMARY KEY,
    workflow_name text NOT NULL,
    status        text NOT NULL,
    definition    text NOT NULL,
    result        text,
    error_code    text,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    paused_at     timestamptz,
    finished_at   timestamptz,
    parent_id     uuid,
    root_id       uuid
);

CREATE TABLE holdfast_stats (
    minute     timestamptz NOT NULL,
    worker_id  text NOT NULL,
    queue_name text NOT NULL,
    task_name  text NOT NULL,
    completed  bigint NOT NULL DEFAULT 0,
    failed     bigint NOT NULL DEFAULT 0,
    retried    bigint NOT NULL DEFAULT 0,
    other      bigint NOT NULL DEFAULT 0,
    wait_us    bigint NOT NULL DEFAULT 0,
    run_us     bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (minute, worker_id, queue_name, task_name)
) WITH (fillfactor = 50);

-- Reserved for a record of what operators do: no code reads or writes it yet.
CREATE TABLE holdfast_audit (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL,
    actor      text NOT NULL,
    verb       text NOT NULL,
    subject    text NOT NULL,
    detail     text
);

CREATE TABLE holdfast_meta (
    name  text PRIMARY KEY,
    value text,
    at    timestamptz
) WITH (fillfactor = 20);
