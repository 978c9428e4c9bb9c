-- Nothing but a hint. Differs from SQLite, where the doorbell rings after the commit.
SELECT count(pg_notify(:hint_channel, p)) FROM unnest(:hint_payloads::text[]) AS p;
