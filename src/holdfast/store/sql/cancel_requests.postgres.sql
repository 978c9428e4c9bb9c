-- Which of these tasks have a cancel requested. Differs from SQLite in how a batch is bound.
SELECT id FROM holdfast_tasks WHERE id = ANY (:ids::uuid[]) AND cancel_requested_at IS NOT NULL;
