-- Which of these tasks nobody else is writing right now; they are ours until the commit.
-- Differs from SQLite, where the writer is alone.
SELECT id AS key FROM holdfast_tasks WHERE id = ANY (:keys::uuid[]) FOR UPDATE SKIP LOCKED;
