-- What code has declared of its tasks, and the digests of all that it ever did.
SELECT scope, declared, seen FROM holdfast_limits;
