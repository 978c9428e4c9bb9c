-- What is left of a recovered lease: the tasks that could not be recovered now.
-- Differs from PostgreSQL in the type of the list.
UPDATE holdfast_leases SET task_ids = :keys WHERE token = :token;
