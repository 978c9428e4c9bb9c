-- Some dead letters, the newest first, of no more than :scan that are examined; `examined` is where to
-- go on when the page came out short. (The first page begins before everything, as in `list_tasks`.)
-- Differs from PostgreSQL in its types, and in how batches are bound.
WITH candidates AS MATERIALIZED (
    SELECT * FROM (
        SELECT id FROM holdfast_tasks
        WHERE :queue_name IS NULL AND dead
            AND id < iif(:before = 'ffffffff-ffff-ffff-ffff-ffffffffffff', x'', :before)
        ORDER BY id DESC LIMIT :scan)
    UNION ALL
    SELECT * FROM (
        SELECT id FROM holdfast_tasks
        WHERE dead AND queue_name = :queue_name
            AND id < iif(:before = 'ffffffff-ffff-ffff-ffff-ffffffffffff', x'', :before)
        ORDER BY queue_name DESC, id DESC LIMIT :scan)
), found AS (
    SELECT task.id, task.seq
    FROM holdfast_tasks AS task
    WHERE task.id IN (SELECT id FROM candidates)
        AND task.dead
        AND (:any_status OR task.status IN (SELECT value FROM json_each(:statuses)))
        AND (:task_name IS NULL OR task.task_name = :task_name)
        AND (:version IS NULL OR task.version = :version)
        AND (:error_code IS NULL OR task.error_code = :error_code)
        AND (:exception IS NULL OR rtrim(substr(task.failed_reason, 1, instr(task.failed_reason || ' ', ' ') - 1), ':') = :exception)
        AND (:text IS NULL OR instr(lower(
            ifnull(task.failed_reason, '') || ' ' || task.id || ' ' || task.task_name || ' '
                || ifnull(task.unique_key, '') || ' ' || ifnull(task.concurrency_key, '')), :text) > 0)
        AND (:tag IS NULL OR instr(task.tags, :tag) > 0)
        AND (:worker_id IS NULL OR task.claimed_by_worker_id = :worker_id)
        AND (:workflow_id IS NULL OR task.workflow_id = :workflow_id)
    AND (:parent_id IS NULL OR task.parent_id = :parent_id)
        AND (:created_from IS NULL OR task.created_at >= :created_from)
        AND (:created_until IS NULL OR task.created_at < :created_until)
        AND (:ended_from IS NULL OR task.finished_at >= :ended_from)
        AND (:ended_until IS NULL OR task.finished_at < :ended_until)
    ORDER BY task.id DESC
    LIMIT :limit
)
SELECT id, 0 AS examined, seq AS key FROM found
UNION ALL
SELECT * FROM (
    SELECT id, 1, NULL FROM candidates
    WHERE (SELECT count(*) FROM candidates) >= :scan
        AND id GLOB '????????-????-????-????-????????????'
    ORDER BY id LIMIT 1);
