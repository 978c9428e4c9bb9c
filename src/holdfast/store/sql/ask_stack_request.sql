-- Leave a question for a worker.
INSERT INTO holdfast_meta (name, value, at) VALUES (:name, NULL, :now)
ON CONFLICT (name) DO UPDATE SET value = NULL, at = excluded.at;
