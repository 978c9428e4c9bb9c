-- A tick is fired. Nothing is returned if it has been before.
-- Differs from SQLite in its types.
INSERT INTO holdfast_schedule_ticks (schedule_name, tick, status, cause, task_id, noted_at)
VALUES (:name, :tick::timestamptz, 'fired', :cause, :task_id::uuid, :now)
ON CONFLICT (schedule_name, tick) DO UPDATE
SET status = excluded.status, cause = excluded.cause, task_id = excluded.task_id,
    noted_at = excluded.noted_at
WHERE holdfast_schedule_ticks.status <> 'fired'
RETURNING 1;
