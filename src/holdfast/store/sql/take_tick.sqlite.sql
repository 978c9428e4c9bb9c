-- A tick is fired. Nothing is returned if it has been before.
-- Differs from PostgreSQL in its types.
INSERT INTO holdfast_schedule_ticks (schedule_name, tick, status, cause, task_id, noted_at)
VALUES (:name, :tick, 'fired', :cause, :task_id, :now)
ON CONFLICT (schedule_name, tick) DO UPDATE
SET status = excluded.status, cause = excluded.cause, task_id = excluded.task_id,
    noted_at = excluded.noted_at
WHERE status <> 'fired'
RETURNING 1;
