-- Dead letters that are steps: they stay with their workflow, and are listed no more. With the last of
-- them its retention begins. Differs from SQLite in how a batch is bound.
UPDATE holdfast_tasks
SET dead = false
WHERE id = ANY (:ids::uuid[]) AND dead AND scope_id IS NOT NULL
RETURNING id;
