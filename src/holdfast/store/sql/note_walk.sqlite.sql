-- How far the walk over all tasks has come. Differs from PostgreSQL in a type.
UPDATE holdfast_meta SET value = :value, at = :now WHERE name = :name;
