-- delete, prune: terminal → ∅, with everything that belongs to the task (there are no foreign keys).
-- Differs from PostgreSQL: one statement per table.
DELETE FROM holdfast_task_attempts WHERE task_seq IN (SELECT value FROM json_each(:keys));
DELETE FROM holdfast_task_notes WHERE task_seq IN (SELECT value FROM json_each(:keys));
DELETE FROM holdfast_task_logs WHERE task_seq IN (SELECT value FROM json_each(:keys));
DELETE FROM holdfast_checkpoints WHERE task_seq IN (SELECT value FROM json_each(:keys));
DELETE FROM holdfast_task_dependencies WHERE parent_id IN (SELECT value FROM json_each(:ids));
DELETE FROM holdfast_task_dependencies WHERE child_id IN (SELECT value FROM json_each(:ids));
DELETE FROM holdfast_tasks
WHERE seq IN (SELECT value FROM json_each(:keys)) AND finished_at IS NOT NULL
RETURNING CAST(id AS BLOB) AS id;
