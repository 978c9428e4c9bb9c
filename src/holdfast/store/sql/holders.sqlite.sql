-- Who holds these tasks and leases. Differs from PostgreSQL: the writer is alone, so nobody does; who
-- keeps the file locked is said by the error of whoever waited for it.
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL WHERE false;
