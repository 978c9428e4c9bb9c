-- Forget the durable steps of tasks that start afresh. Differs from SQLite in its key.
DELETE FROM holdfast_checkpoints WHERE task_id = ANY (:ids::uuid[]);
