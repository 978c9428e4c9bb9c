-- What keeps dead rows from being removed. Differs from PostgreSQL: there are none.
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
WHERE :before IS NULL;
