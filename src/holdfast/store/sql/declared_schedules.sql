-- The schedules that code has declared, with the definitions that were ever in force.
SELECT schedule_name, config_hash, seen_hashes, stopped_at
FROM holdfast_schedules
WHERE declared;
