-- Which of these tasks can be written right now without waiting for anybody; they are ours until the
-- commit. Differs from SQLite, where the writer is alone.
SELECT id AS key FROM holdfast_tasks WHERE id = ANY (:keys::uuid[]) FOR NO KEY UPDATE SKIP LOCKED;
