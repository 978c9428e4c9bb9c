-- The version of the limits changes: whoever claims has to learn of it first. Until this commits,
-- nobody else changes a limit.
INSERT INTO holdfast_meta (name, value, at) VALUES ('limits', :version, :now)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, at = excluded.at;
