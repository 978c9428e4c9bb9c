-- Version 5: until when a unique call holds its key (null: until it has ended).
-- Differs from PostgreSQL in its types.

ALTER TABLE holdfast_tasks ADD COLUMN unique_until TEXT;
