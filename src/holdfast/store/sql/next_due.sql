-- When the next SCHEDULED task comes due, and how the clock stands now.
SELECT (SELECT min(due_at) FROM holdfast_tasks WHERE due_at IS NOT NULL), :now;
