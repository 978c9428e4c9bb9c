-- What a task was parked for has been done.
UPDATE holdfast_tasks SET parked = NULL WHERE id = :id AND parked = :why;
