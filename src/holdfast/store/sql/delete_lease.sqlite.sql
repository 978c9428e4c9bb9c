-- Remove a lease that cannot be read, by its raw token, which may be anything.
-- Differs from PostgreSQL in the token's type.
DELETE FROM holdfast_leases WHERE lower(hex(token)) = :token_hex;
