-- Delete rows that cannot be read, whatever their status says, with all that belongs to them.
-- Differs from PostgreSQL: one statement per table.
DELETE FROM holdfast_task_attempts WHERE task_seq IN (SELECT value FROM json_each(:keys));
DELETE FROM holdfast_task_notes WHERE task_seq IN (SELECT value FROM json_each(:keys));
DELETE FROM holdfast_task_logs WHERE task_seq IN (SELECT value FROM json_each(:keys));
DELETE FROM holdfast_checkpoints WHERE task_seq IN (SELECT value FROM json_each(:keys));
DELETE FROM holdfast_task_dependencies WHERE parent_id IN (
    SELECT id FROM holdfast_tasks WHERE seq IN (SELECT value FROM json_each(:keys)));
DELETE FROM holdfast_task_dependencies WHERE child_id IN (
    SELECT id FROM holdfast_tasks WHERE seq IN (SELECT value FROM json_each(:keys)));
DELETE FROM holdfast_tasks WHERE seq IN (SELECT value FROM json_each(:keys)) RETURNING seq AS key;
