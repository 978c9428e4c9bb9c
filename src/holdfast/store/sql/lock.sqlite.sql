-- Which of these tasks nobody else is writing right now; they are ours until the commit.
-- Differs from PostgreSQL: the writer is alone here, so all of them.
SELECT seq AS key FROM holdfast_tasks WHERE seq IN (SELECT value FROM json_each(:keys));
