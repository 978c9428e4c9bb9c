-- What a reaper has to know: leases, expired ones, when the fleet was last looked after, until when
-- recovery has to wait, and how the clock stands.
SELECT
    (SELECT count(*) FROM holdfast_leases),
    (SELECT count(*) FROM holdfast_leases WHERE expires_at < :now),
    (SELECT at FROM holdfast_meta WHERE name = :maintained),
    (SELECT at FROM holdfast_meta WHERE name = :quiet),
    :now;
