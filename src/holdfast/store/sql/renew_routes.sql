-- The version of the routes changes: senders read them anew. Until this commits, nobody else
-- changes a route.
INSERT INTO holdfast_meta (name, value, at) VALUES ('routes', :version, :now)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, at = excluded.at;
