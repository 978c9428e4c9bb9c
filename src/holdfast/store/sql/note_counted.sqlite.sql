-- Say up to when sends are counted, unless another worker has meanwhile said so. Differs from
-- PostgreSQL in a type.
UPDATE holdfast_meta SET value = :value
WHERE name = :name AND value IS :before
RETURNING name;
