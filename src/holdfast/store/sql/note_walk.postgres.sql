-- How far the walk over all tasks has come. Differs from SQLite in a type.
UPDATE holdfast_meta SET value = :value::text, at = :now WHERE name = :name;
