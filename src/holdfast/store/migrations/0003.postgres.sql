-- Version 3: workflows.
-- Differs from SQLite in its types and storage settings.

-- Of a step: its scope (its workflow, or the step that added it) and its place there; null for
-- every other task. `parked`: it ended, and those that wait for it have not been told yet.
ALTER TABLE holdfast_tasks ADD COLUMN scope_id uuid;
ALTER TABLE holdfast_tasks ADD COLUMN step_number integer;
ALTER TABLE holdfast_tasks ADD COLUMN step_name text;
ALTER TABLE holdfast_tasks ADD COLUMN step_part integer;
ALTER TABLE holdfast_tasks ADD COLUMN step_required boolean;
ALTER TABLE holdfast_tasks ADD COLUMN step_handler boolean;
ALTER TABLE holdfast_tasks ADD COLUMN step_cleanup boolean;
ALTER TABLE holdfast_tasks ADD COLUMN step_tail text;
ALTER TABLE holdfast_tasks ADD COLUMN step_hidden text;
ALTER TABLE holdfast_tasks ADD COLUMN inputs text;
ALTER TABLE holdfast_tasks ADD COLUMN handed_over boolean;
ALTER TABLE holdfast_tasks ADD COLUMN parked text;
ALTER TABLE holdfast_tasks ADD COLUMN cancel_code text;
CREATE INDEX holdfast_tasks_step ON holdfast_tasks (scope_id, step_number)
    WHERE scope_id IS NOT NULL;
CREATE INDEX holdfast_tasks_parked ON holdfast_tasks (id) WHERE parked IS NOT NULL;

DROP TABLE holdfast_workflows;
CREATE TABLE holdfast_workflows (
    workflow_id   uuid PRIMARY KEY,
    workflow_name text NOT NULL,
    version       integer NOT NULL,
    status        text NOT NULL CHECK (status IN ('RUNNING', 'PAUSED', 'COMPLETED', 'FAILED', 'CANCELLED')),
    on_failure    text NOT NULL,
    stopping      text,
    stopped_by    text,
    stop_all      boolean NOT NULL DEFAULT false,
    paused_at     timestamptz,
    paused_by     text,
    deadline_us   bigint,
    deadline_at   timestamptz,
    run_at        timestamptz,
    unique_key    text,
    unique_slot   text,
    tags          text,
    arguments     text,
    digest        text NOT NULL,
    sent_at       timestamptz NOT NULL,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    finished_at   timestamptz,
    steps         integer NOT NULL,
    parent_id     uuid,
    step_id       uuid,
    root_id       uuid,
    trace_context text,
    CHECK ((finished_at IS NOT NULL) = (status IN ('COMPLETED', 'FAILED', 'CANCELLED')))
);
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
    scope_id    uuid PRIMARY KEY,
    workflow_id uuid NOT NULL,
    body_open   integer NOT NULL,
    tail_open   integer NOT NULL,
    error_id    uuid,
    error_gate  uuid,
    ended_gate  uuid,
    returns     text
);

-- Steps that have not ended, and those that ended badly, in rows of 64: so that not every end
-- writes the same row.
CREATE TABLE holdfast_step_counts (
    scope_id uuid NOT NULL,
    part     integer NOT NULL,
    is_tail  boolean NOT NULL,
    open     integer NOT NULL,
    bad      integer NOT NULL DEFAULT 0,
    PRIMARY KEY (scope_id, part)
) WITH (fillfactor = 50);
