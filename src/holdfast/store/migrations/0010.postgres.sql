-- Version 10: long pauses and resubmits of workflows, a part at a time.
-- Differs from SQLite in its types.

-- `held`: steps may be held by a pause, that of now or one that is over. `resubmitting`: its steps are
-- made to run again, in the order of (scope, number), those up to the cursor have been; 'bad': those
-- that ended badly up to `resubmitted_at` and those that were skipped for it, 'below': the latter alone.
ALTER TABLE holdfast_workflows ADD COLUMN held boolean NOT NULL DEFAULT false;
ALTER TABLE holdfast_workflows ADD COLUMN resubmitting text CHECK (resubmitting IN ('bad', 'below'));
ALTER TABLE holdfast_workflows ADD COLUMN resubmit_fresh boolean NOT NULL DEFAULT false;
ALTER TABLE holdfast_workflows ADD COLUMN resubmit_scope uuid;
ALTER TABLE holdfast_workflows ADD COLUMN resubmit_number integer;
ALTER TABLE holdfast_workflows ADD COLUMN resubmitted_at timestamptz;
UPDATE holdfast_workflows SET held = true WHERE status = 'PAUSED';
DROP INDEX holdfast_workflows_tended;
CREATE INDEX holdfast_workflows_tended ON holdfast_workflows (workflow_id)
    WHERE finished_at IS NULL AND (stopping IS NOT NULL OR held OR resubmitting IS NOT NULL);
CREATE INDEX holdfast_workflows_newest ON holdfast_workflows (created_at, workflow_id);
CREATE INDEX holdfast_workflows_name ON holdfast_workflows (workflow_name, created_at, workflow_id);
CREATE INDEX holdfast_scopes_workflow ON holdfast_scopes (workflow_id);
