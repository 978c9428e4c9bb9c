-- Where these tasks stand. Differs from SQLite in how a batch is bound.
SELECT id, status FROM holdfast_tasks WHERE id = ANY (:ids::uuid[]);
