-- Whether the keys of a queue take turns.
-- Differs from PostgreSQL in the type of a flag.
INSERT INTO holdfast_queues (queue_name, fair, updated_at) VALUES (:queue_name, :fair, :now)
ON CONFLICT (queue_name) DO UPDATE SET fair = excluded.fair, updated_at = excluded.updated_at;
