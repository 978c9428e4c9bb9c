-- A schedule is paused, resumed, stopped or started.
-- Differs from PostgreSQL in its types; the doorbell rings after the commit.
UPDATE holdfast_schedules
SET paused_at = iif(:paused, ifnull(paused_at, :now), NULL),
    paused_by = iif(:paused, ifnull(paused_by, :by), NULL),
    stopped_at = iif(:stopped, ifnull(stopped_at, :now), NULL),
    next_run_at = :next_run_at,
    has_waiting = has_waiting AND :keeps_waiting,
    updated_at = :now
WHERE schedule_name = :name;
