-- One schedule.
-- Differs from PostgreSQL: one writer at a time, so there is nobody to pass over.
SELECT
    schedule_name, pattern, timezone, overlap, missed, max_missed, start_at, end_at, task_name,
    version, payload, declared, config_hash, seen_hashes, next_run_at, last_run_at, last_tick,
    last_task_id, run_count, dropped_count, has_waiting, paused_at, paused_by, stopped_at,
    history_from, created_at, created_by, updated_at
FROM holdfast_schedules
WHERE schedule_name = :name;
