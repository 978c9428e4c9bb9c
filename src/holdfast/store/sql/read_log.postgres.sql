-- What attempts of a task printed, in order, from behind a given part on.
-- Differs from SQLite in the key of a task.
SELECT attempt, part, written_at, data
FROM holdfast_task_logs
WHERE task_id = :id::uuid
    AND (attempt, part) > (:after_attempt::int, :after_part::int)
    AND attempt <= :last_attempt::int
ORDER BY attempt, part
LIMIT :parts::int;
