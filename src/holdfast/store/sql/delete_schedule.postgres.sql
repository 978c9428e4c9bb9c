-- A schedule is removed, with what its ticks came to. Its tasks stay.
-- Differs from SQLite: one statement.
WITH ticks AS (
    DELETE FROM holdfast_schedule_ticks WHERE schedule_name = :name
)
DELETE FROM holdfast_schedules WHERE schedule_name = :name RETURNING 1;
