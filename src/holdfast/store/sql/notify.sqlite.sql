-- Nothing but a hint. Differs from PostgreSQL: the engine rings the doorbell after the commit.
SELECT 0;
