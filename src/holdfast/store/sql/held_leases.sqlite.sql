-- The expired leases that somebody holds at this moment. Differs from PostgreSQL: the writer is
-- alone, so there are none.
SELECT NULL WHERE false;
