-- Another definition of a schedule; what it has done stays.
-- Differs from PostgreSQL in its types.
UPDATE holdfast_schedules
SET pattern = :pattern, timezone = :timezone, overlap = :overlap, missed = :missed,
    max_missed = :max_missed, start_at = :start_at, end_at = :end_at, task_name = :task_name,
    version = :version, payload = :payload, declared = :declared, config_hash = :config_hash,
    seen_hashes = :seen_hashes, next_run_at = :next_run_at, has_waiting = 0, stopped_at = NULL,
    updated_at = :now
WHERE schedule_name = :name;
