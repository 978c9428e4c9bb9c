-- Write the dependencies of new tasks. Differs from SQLite in how rows are bound.
INSERT INTO holdfast_task_dependencies (parent_id, child_id, on_status)
SELECT parent_id, child_id, on_status
FROM unnest(:parent_id::uuid[], :child_id::uuid[], :on_status::text[])
    AS edge (parent_id, child_id, on_status)
ON CONFLICT DO NOTHING;
