-- The expired leases that another transaction holds at this moment: their owners could not renew
-- them. Differs from SQLite, where the writer is alone.
WITH free AS MATERIALIZED (
    SELECT token FROM holdfast_leases WHERE expires_at < :now FOR SHARE SKIP LOCKED
)
SELECT token
FROM holdfast_leases
WHERE expires_at < :now AND token <> ALL (ARRAY(SELECT token FROM free));
