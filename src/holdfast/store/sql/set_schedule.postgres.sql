-- A schedule is paused, resumed, stopped or started; and the hint leaves with the commit.
-- Differs from SQLite in its types, and in the hint.
UPDATE holdfast_schedules
SET paused_at = CASE WHEN :paused::boolean THEN coalesce(paused_at, :now) END,
    paused_by = CASE WHEN :paused::boolean THEN coalesce(paused_by, :by::text) END,
    stopped_at = CASE WHEN :stopped::boolean THEN coalesce(stopped_at, :now) END,
    next_run_at = :next_run_at::timestamptz,
    has_waiting = has_waiting AND :keeps_waiting::boolean,
    updated_at = :now
WHERE schedule_name = :name
RETURNING
    schedule_name,
    (SELECT count(pg_notify(:hint_channel, p)) FROM unnest(:hint_payloads::text[]) AS p);
