-- Remember a time for the whole store; null: now. Differs from PostgreSQL in its types.
INSERT INTO holdfast_meta (name, at) VALUES (:name, ifnull(:at, :now))
ON CONFLICT (name) DO UPDATE SET at = excluded.at
RETURNING 1;
