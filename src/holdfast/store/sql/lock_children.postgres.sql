-- Lock what waits for steps that are resubmitted, and has been told of their end, in the order of its ids:
-- its edges are opened again by how it stands. Differs from SQLite, where the writer is alone.
SELECT count(*)
FROM (
    SELECT child.id
    FROM holdfast_tasks AS child
    WHERE child.id = ANY (ARRAY(
            SELECT edge.child_id
            FROM holdfast_task_dependencies AS edge
            WHERE edge.parent_id = ANY (:ids::uuid[]) AND edge.resolved
        ))
    ORDER BY child.id
    FOR UPDATE
) AS locked;
