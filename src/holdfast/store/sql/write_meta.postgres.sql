-- Remember a time for the whole store; null: now. Differs from SQLite in its types.
INSERT INTO holdfast_meta (name, at) VALUES (:name, coalesce(:at::timestamptz, :now))
ON CONFLICT (name) DO UPDATE SET at = excluded.at
RETURNING at;
