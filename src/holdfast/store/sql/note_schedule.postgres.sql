-- What a look at a schedule came to. A counter that can count no further stands still.
-- Differs from SQLite in its types.
UPDATE holdfast_schedules
SET next_run_at = :next_run_at::timestamptz,
    has_waiting = :has_waiting::boolean,
    last_run_at = CASE WHEN :last_task_id::uuid IS NULL THEN last_run_at ELSE :now END,
    last_tick = coalesce(:last_tick::timestamptz, last_tick),
    last_task_id = coalesce(:last_task_id::uuid, last_task_id),
    run_count = least(run_count, 9007199254740992) + :runs::int,
    dropped_count = least(dropped_count, 9007199254740992) + :dropped::int,
    updated_at = :now
WHERE schedule_name = :name;
