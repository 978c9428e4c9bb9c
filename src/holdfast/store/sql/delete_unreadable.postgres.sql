-- Delete rows that cannot be read, whatever their status says, with all that belongs to them.
-- Differs from SQLite: one statement; data-modifying CTEs.
WITH attempts AS (
    DELETE FROM holdfast_task_attempts WHERE task_id = ANY (:keys::uuid[])
), notes AS (
    DELETE FROM holdfast_task_notes WHERE task_id = ANY (:keys::uuid[])
), logs AS (
    DELETE FROM holdfast_task_logs WHERE task_id = ANY (:keys::uuid[])
), points AS (
    DELETE FROM holdfast_checkpoints WHERE task_id = ANY (:keys::uuid[])
), parents AS (
    DELETE FROM holdfast_task_dependencies WHERE parent_id = ANY (:keys::uuid[])
), children AS (
    DELETE FROM holdfast_task_dependencies
    WHERE child_id = ANY (:keys::uuid[]) AND parent_id <> ALL (:keys::uuid[])
)
DELETE FROM holdfast_tasks WHERE id = ANY (:keys::uuid[]) RETURNING id AS key;
