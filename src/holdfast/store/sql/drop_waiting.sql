-- The ticks of a schedule that wait are dropped.
UPDATE holdfast_schedule_ticks
SET status = 'dropped', cause = :cause, noted_at = :now
WHERE schedule_name = :name AND status = 'waiting';
