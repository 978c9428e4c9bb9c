-- Which questions are open. Differs from SQLite in how a batch is bound.
SELECT name FROM holdfast_meta WHERE name = ANY (:names::text[]) AND value IS NULL;
