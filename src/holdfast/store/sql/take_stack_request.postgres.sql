-- Take an answer, or withdraw the question. Differs from SQLite in a type.
DELETE FROM holdfast_meta
WHERE name = :name AND (value IS NOT NULL OR :give_up::bool)
RETURNING value;
