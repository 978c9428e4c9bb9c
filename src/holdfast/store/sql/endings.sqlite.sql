-- How those of these tasks that have ended did so: what a waiter asks. Before it waits, about all of
-- them: one that is not there is waited for in vain.
-- Differs from PostgreSQL in how a batch is bound.
SELECT id, status, result, error_code, failed_reason, finished_at, task_name, handed_over
FROM holdfast_tasks
WHERE id IN (SELECT value FROM json_each(:ids)) AND (finished_at IS NOT NULL OR :all_of_them);
