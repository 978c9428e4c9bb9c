-- Answer a question, if it is still asked.
UPDATE holdfast_meta SET value = :value, at = :now WHERE name = :name AND value IS NULL;
