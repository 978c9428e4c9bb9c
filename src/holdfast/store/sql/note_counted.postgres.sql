-- Say up to when sends are counted, unless another worker has meanwhile said so. Differs from SQLite
-- in a type.
UPDATE holdfast_meta SET value = :value::text
WHERE name = :name::text AND value IS NOT DISTINCT FROM :before::text
RETURNING name;
