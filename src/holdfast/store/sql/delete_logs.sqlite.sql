-- Forget the logs of these tasks. Differs from PostgreSQL in the key of a task.
DELETE FROM holdfast_task_logs WHERE task_seq IN (SELECT value FROM json_each(:keys));
