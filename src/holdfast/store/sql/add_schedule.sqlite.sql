-- A new schedule. Nothing is returned if the name is taken.
-- Differs from PostgreSQL in its types.
INSERT INTO holdfast_schedules (
    schedule_name, pattern, timezone, overlap, missed, max_missed, start_at, end_at, task_name,
    version, payload, declared, config_hash, seen_hashes, next_run_at, created_at, created_by,
    updated_at
)
VALUES (
    :name, :pattern, :timezone, :overlap, :missed, :max_missed, :start_at, :end_at, :task_name,
    :version, :payload, :declared, :config_hash, :seen_hashes, :next_run_at, :now, :created_by,
    :now
)
ON CONFLICT DO NOTHING
RETURNING 1;
