-- Whether a step is a handler, and whether it is one that cleans up.
SELECT step_handler, step_cleanup FROM holdfast_tasks WHERE id = :id;
