-- Nothing to lock: the writer is alone. Differs from PostgreSQL, which has other writers.
SELECT id FROM holdfast_tasks WHERE id IN (SELECT value FROM json_each(:ids)) AND 0;
