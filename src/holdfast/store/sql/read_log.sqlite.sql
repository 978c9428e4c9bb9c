-- What attempts of a task printed, in order, from behind a given part on.
-- Differs from PostgreSQL in the key of a task.
SELECT log.attempt, log.part, log.written_at, log.data
FROM holdfast_task_logs AS log
WHERE log.task_seq = (SELECT task.seq FROM holdfast_tasks AS task WHERE task.id = :id)
    AND (log.attempt, log.part) > (:after_attempt, :after_part)
    AND log.attempt <= :last_attempt
ORDER BY log.attempt, log.part
LIMIT :parts;
