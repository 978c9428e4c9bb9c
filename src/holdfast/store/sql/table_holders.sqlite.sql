-- Who has locked a table. Differs from PostgreSQL: the writer is alone, and there are no such locks.
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL WHERE false;
