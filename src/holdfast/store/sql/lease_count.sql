-- How many leases there are.
SELECT count(*) FROM holdfast_leases;
