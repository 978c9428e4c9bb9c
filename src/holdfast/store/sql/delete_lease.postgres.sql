-- Remove a lease that cannot be read, by its raw token. Differs from SQLite in the token's type.
DELETE FROM holdfast_leases WHERE encode(uuid_send(token), 'hex') = :token_hex;
