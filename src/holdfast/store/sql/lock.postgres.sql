-- Which of these tasks can be ended right now without waiting for anybody: nobody else is writing
-- them, nor what waits for them and would be counted. They are ours until the commit, children
-- included. Differs from SQLite, where the writer is alone.
WITH free AS MATERIALIZED (
    SELECT id FROM holdfast_tasks WHERE id = ANY (:keys::uuid[]) FOR UPDATE SKIP LOCKED
), children AS MATERIALIZED (
    SELECT id
    FROM holdfast_tasks
    WHERE id = ANY (ARRAY(
            SELECT child_id
            FROM holdfast_task_dependencies
            WHERE parent_id = ANY (ARRAY(SELECT id FROM free)) AND NOT resolved
        ))
    FOR UPDATE SKIP LOCKED
)
SELECT id AS key
FROM free
WHERE id <> ALL (ARRAY(
        SELECT parent_id
        FROM holdfast_task_dependencies
        WHERE parent_id = ANY (ARRAY(SELECT id FROM free))
            AND NOT resolved
            AND child_id <> ALL (ARRAY(SELECT id FROM children))
    ));
