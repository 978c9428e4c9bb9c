-- Write the dependencies of new tasks. Differs from PostgreSQL in how rows are bound.
INSERT INTO holdfast_task_dependencies (parent_id, child_id, on_status)
VALUES (:parent_id, :child_id, :on_status)
ON CONFLICT DO NOTHING;
