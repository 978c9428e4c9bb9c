-- Whether the keys of a queue take turns.
-- Differs from SQLite in the type of a flag.
INSERT INTO holdfast_queues (queue_name, fair, updated_at) VALUES (:queue_name, :fair::boolean, :now)
ON CONFLICT (queue_name) DO UPDATE SET fair = excluded.fair, updated_at = excluded.updated_at;
