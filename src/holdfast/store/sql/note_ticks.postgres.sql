-- Ticks that wait or are dropped; one that has been fired stays so.
-- Differs from SQLite in how rows are bound.
INSERT INTO holdfast_schedule_ticks (schedule_name, tick, status, cause, task_id, noted_at)
SELECT name, tick, status, cause, task_id, :now
FROM unnest(
    :name::text[], :tick::timestamptz[], :status::text[], :cause::text[], :task_id::uuid[]
) AS noted (name, tick, status, cause, task_id)
ON CONFLICT (schedule_name, tick) DO UPDATE
SET status = excluded.status, cause = excluded.cause, task_id = excluded.task_id,
    noted_at = excluded.noted_at
WHERE holdfast_schedule_ticks.status = 'waiting' AND excluded.status = 'dropped';
