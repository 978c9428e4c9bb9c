-- Version 11: the tasks that a task has sent.
-- The same as for PostgreSQL: a migration is a pair.

-- Few tasks are sent by tasks, and the sender never changes: running one writes nothing here.
CREATE INDEX holdfast_tasks_parent ON holdfast_tasks (parent_id, id) WHERE parent_id IS NOT NULL;
