-- The ticks of a schedule that wait for the prior run.
SELECT tick
FROM holdfast_schedule_ticks
WHERE schedule_name = :name AND status = 'waiting'
ORDER BY tick;
