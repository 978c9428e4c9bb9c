-- Version 5: until when a unique call holds its key (null: until it has ended).
-- Differs from SQLite in its types.

ALTER TABLE holdfast_tasks ADD COLUMN unique_until text;
