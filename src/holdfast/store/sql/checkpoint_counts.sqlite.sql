-- How many checkpoints a server has made. Differs from PostgreSQL: there is no server.
SELECT NULL, NULL
LIMIT 0;
