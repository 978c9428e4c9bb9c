-- Another definition of a schedule; what it has done stays.
-- Differs from SQLite in its types.
UPDATE holdfast_schedules
SET pattern = :pattern, timezone = :timezone, overlap = :overlap, missed = :missed,
    max_missed = :max_missed::int, start_at = :start_at::timestamptz,
    end_at = :end_at::timestamptz, task_name = :task_name, version = :version::int,
    payload = :payload, declared = :declared::boolean, config_hash = :config_hash,
    seen_hashes = :seen_hashes, next_run_at = :next_run_at::timestamptz, has_waiting = false,
    stopped_at = NULL, updated_at = :now
WHERE schedule_name = :name;
