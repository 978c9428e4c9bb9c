-- Take an answer, or withdraw the question. Differs from PostgreSQL in a type.
DELETE FROM holdfast_meta
WHERE name = :name AND (value IS NOT NULL OR :give_up)
RETURNING CAST(value AS BLOB) AS value;
