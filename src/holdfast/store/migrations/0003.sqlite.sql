-- Version 3: workflows.
-- Differs from PostgreSQL in its types and storage settings.

-- Of a step: its scope (its workflow, or the step that added it) and its place there; null for
-- every other task. `parked`: it ended, and those that wait for it have not been told yet.
ALTER TABLE holdfast_tasks ADD COLUMN scope_id TEXT;
ALTER TABLE holdfast_tasks ADD COLUMN step_number INTEGER;
ALTER TABLE holdfast_tasks ADD COLUMN step_name TEXT;
ALTER TABLE holdfast_tasks ADD COLUMN step_part INTEGER;
ALTER TABLE holdfast_tasks ADD COLUMN step_required INTEGER;
ALTER TABLE holdfast_tasks ADD COLUMN step_handler INTEGER;
ALTER TABLE holdfast_tasks ADD COLUMN step_cleanup INTEGER;
ALTER TABLE holdfast_tasks ADD COLUMN step_tail TEXT;
ALTER TABLE holdfast_tasks ADD COLUMN step_hidden TEXT;
ALTER TABLE holdfast_tasks ADD COLUMN inputs TEXT;
ALTER TABLE holdfast_tasks ADD COLUMN handed_over INTEGER;
ALTER TABLE holdfast_tasks ADD COLUMN parked TEXT;
ALTER TABLE holdfast_tasks ADD COLUMN cancel_code TEXT;
CREATE INDEX holdfast_tasks_step ON holdfast_tasks (scope_id, step_number)
    WHERE scope_id IS NOT NULL;
CREATE INDEX holdfast_tasks_parked ON holdfast_tasks (id) WHERE parked IS NOT NULL;

DROP TABLE holdfast_workflows;
CREATE TABLE holdfast_workflows (
    workflow_id   TEXT PRIMARY KEY,
    workflow_name TEXT NOT NULL,
    version       INTEGER NOT NULL,
    status        TEXT NOT NULL CHECK (status IN ('RUNNING', 'PAUSED', 'COMPLETED', 'FAILED', 'CANCELLED')),
    on_failure    TEXT NOT NULL,
    stopping      TEXT,
    stopped_by    TEXT,
    stop_all      INTEGER NOT NULL DEFAULT 0,
    paused_at     INTEGER,
    paused_by     TEXT,
    deadline_us   INTEGER,
    deadline_at   INTEGER,
    run_at        INTEGER,
    unique_key    TEXT,
    unique_slot   TEXT,
    tags          TEXT,
    arguments     TEXT,
    digest        TEXT NOT NULL,
    sent_at       INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    finished_at   INTEGER,
    steps         INTEGER NOT NULL,
    parent_id     TEXT,
    step_id       TEXT,
    root_id       TEXT,
    trace_context TEXT,
    CHECK ((finished_at IS NOT NULL) = (status IN ('COMPLETED', 'FAILED', 'CANCELLED')))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX holdfast_workflows_unique ON holdfast_workflows (unique_slot)
    WHERE unique_slot IS NOT NULL;
CREATE INDEX holdfast_workflows_part ON holdfast_workflows (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX holdfast_workflows_deadline ON holdfast_workflows (deadline_at)
    WHERE deadline_at IS NOT NULL AND finished_at IS NULL AND stopping IS NULL;
CREATE INDEX holdfast_workflows_tended ON holdfast_workflows (workflow_id)
    WHERE finished_at IS NULL AND (stopping IS NOT NULL OR status = 'PAUSED');

-- What is counted together: the steps of a workflow, or those that one step has added. The gates
-- stand in edges in place of a parent: they open at the first bad ending, and when the body ended.
CREATE TABLE holdfast_scopes (
    scope_id    TEXT PRIMARY KEY,
    workflow_id TEXT NOT NULL,
    body_open   INTEGER NOT NULL,
    tail_open   INTEGER NOT NULL,
    error_id    TEXT,
    error_gate  TEXT,
    ended_gate  TEXT,
    returns     TEXT
) STRICT, WITHOUT ROWID;

-- Steps that have not ended, and those that ended badly, in rows of 64: so that not every end
-- writes the same row.
CREATE TABLE holdfast_step_counts (
    scope_id TEXT NOT NULL,
    part     INTEGER NOT NULL,
    is_tail  INTEGER NOT NULL,
    open     INTEGER NOT NULL,
    bad      INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (scope_id, part)
) STRICT, WITHOUT ROWID;
