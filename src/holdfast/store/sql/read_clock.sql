-- The time by the database's own clock.
SELECT :now;
