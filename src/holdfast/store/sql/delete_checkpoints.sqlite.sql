-- Forget the durable steps of tasks that start afresh. Differs from PostgreSQL in its key.
DELETE FROM holdfast_checkpoints
WHERE task_seq IN (
    SELECT seq FROM holdfast_tasks WHERE id IN (SELECT value FROM json_each(:ids)));
