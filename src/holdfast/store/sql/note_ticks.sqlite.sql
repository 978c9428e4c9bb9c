-- A tick that waits or is dropped; one that has been fired stays so. Run once for each.
-- Differs from PostgreSQL in how rows are bound.
INSERT INTO holdfast_schedule_ticks (schedule_name, tick, status, cause, task_id, noted_at)
VALUES (:name, :tick, :status, :cause, :task_id, :now)
ON CONFLICT (schedule_name, tick) DO UPDATE
SET status = excluded.status, cause = excluded.cause, task_id = excluded.task_id,
    noted_at = excluded.noted_at
WHERE status = 'waiting' AND excluded.status = 'dropped';
