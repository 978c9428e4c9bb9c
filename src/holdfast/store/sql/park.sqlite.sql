-- Steps were skipped, and what waits for them is to be told by somebody else, soon.
-- Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_tasks SET parked = 'edges' WHERE id IN (SELECT value FROM json_each(:ids));
