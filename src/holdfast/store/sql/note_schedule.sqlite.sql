-- What a look at a schedule came to. A counter that can count no further stands still.
-- Differs from PostgreSQL in its types.
UPDATE holdfast_schedules
SET next_run_at = :next_run_at,
    has_waiting = :has_waiting,
    last_run_at = iif(:last_task_id IS NULL, last_run_at, :now),
    last_tick = ifnull(:last_tick, last_tick),
    last_task_id = ifnull(:last_task_id, last_task_id),
    run_count = min(run_count, 9007199254740992) + :runs,
    dropped_count = min(dropped_count, 9007199254740992) + :dropped,
    updated_at = :now
WHERE schedule_name = :name;
