-- Dead letters that are steps: they stay with their workflow, and are listed no more. With the last of
-- them its retention begins. Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_tasks
SET dead = 0
WHERE id IN (SELECT value FROM json_each(:ids)) AND dead AND scope_id IS NOT NULL
RETURNING id;
