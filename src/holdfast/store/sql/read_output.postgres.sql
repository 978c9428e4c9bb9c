-- What a generator task has yielded so far, and whether more may come.
-- Differs from SQLite in the key of a task.
SELECT task.status, task.attempt, note.output
FROM holdfast_tasks AS task
LEFT JOIN holdfast_task_notes AS note ON note.task_id = task.id
WHERE task.id = :id;
