-- Which of these tasks can be ended right now without waiting for anybody: nobody else is writing
-- them, nor what waits for them and would be counted, nor the count of their workflow that their end
-- changes. They are ours until the commit, children and counts included.
-- Differs from SQLite, where the writer is alone.
WITH free AS MATERIALIZED (
    SELECT id, scope_id, step_part
    FROM holdfast_tasks
    WHERE id = ANY (:keys::uuid[])
    FOR UPDATE SKIP LOCKED
), children AS MATERIALIZED (
    SELECT id
    FROM holdfast_tasks
    WHERE id = ANY (ARRAY(
            SELECT child_id
            FROM holdfast_task_dependencies
            WHERE parent_id = ANY (ARRAY(SELECT id FROM free)) AND NOT resolved
        ))
    FOR UPDATE SKIP LOCKED
), counts AS MATERIALIZED (
    SELECT scope_id, part
    FROM holdfast_step_counts
    WHERE scope_id = ANY (ARRAY(SELECT scope_id FROM free WHERE scope_id IS NOT NULL))
        AND (scope_id, part) IN (SELECT scope_id, step_part FROM free)
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
    ))
    AND NOT EXISTS (
        SELECT FROM holdfast_step_counts AS count
        WHERE count.scope_id = free.scope_id AND count.part = free.step_part
            AND (count.scope_id, count.part) NOT IN (SELECT scope_id, part FROM counts)
    );
