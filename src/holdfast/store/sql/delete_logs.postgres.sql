-- Forget the logs of these tasks. Differs from SQLite in the key of a task.
DELETE FROM holdfast_task_logs WHERE task_id = ANY (:keys::uuid[]);
