-- Which questions are open. Differs from PostgreSQL in how a batch is bound.
SELECT name FROM holdfast_meta
WHERE name IN (SELECT value FROM json_each(:names)) AND holdfast_meta.value IS NULL;
