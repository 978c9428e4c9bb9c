-- How each table of ours is kept. Differs from PostgreSQL: there are no dead rows.
SELECT NULL, NULL, NULL, NULL, NULL
LIMIT 0;
