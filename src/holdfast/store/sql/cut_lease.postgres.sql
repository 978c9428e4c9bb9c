-- What is left of a recovered lease: the tasks that could not be recovered now.
-- Differs from SQLite in the type of the list.
UPDATE holdfast_leases SET task_ids = :keys::uuid[] WHERE token = :token::uuid;
