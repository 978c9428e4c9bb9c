-- Which of these tasks can be written right now without waiting for anybody.
-- Differs from PostgreSQL: the writer is alone here, so all of them.
SELECT seq AS key FROM holdfast_tasks WHERE seq IN (SELECT value FROM json_each(:keys));
