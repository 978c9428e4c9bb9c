-- The task of a tick was not sent, because its unique key was taken.
-- Differs from PostgreSQL in its types.
UPDATE holdfast_schedule_ticks
SET status = 'dropped', cause = :cause, task_id = :task_id
WHERE schedule_name = :name AND tick = :tick;
