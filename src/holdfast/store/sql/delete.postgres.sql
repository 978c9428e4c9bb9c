-- delete, prune: terminal → ∅, with everything that belongs to the task (there are no foreign keys).
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
    DELETE FROM holdfast_task_dependencies WHERE parent_id = ANY (:ids::uuid[])
), children AS (
    DELETE FROM holdfast_task_dependencies
    WHERE child_id = ANY (:ids::uuid[]) AND parent_id <> ALL (:ids::uuid[])
)
DELETE FROM holdfast_tasks
WHERE id = ANY (:keys::uuid[]) AND finished_at IS NOT NULL
RETURNING id;
