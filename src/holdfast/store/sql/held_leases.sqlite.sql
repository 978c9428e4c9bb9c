-- The expired leases that another transaction holds at this moment. Differs from PostgreSQL: the
-- writer is alone, so there are none.
SELECT NULL WHERE false;
