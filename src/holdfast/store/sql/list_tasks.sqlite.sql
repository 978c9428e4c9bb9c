-- One page of tasks, the newest first. Each branch of `candidates` is one access path, and :path
-- switches all but one off; none examines more than :scan entries, so that a table of ten million
-- rows cannot hurt the queue. `examined` is where to go on when a page came out short. What is
-- wanted of one queue is read from an index by that queue, without the entries of others.
-- (The first page begins before everything: an id that is none may be greater than all that are,
-- and any text is less than any blob.)
-- Differs from PostgreSQL in how batches are bound and in how leases name their tasks.
WITH candidates AS MATERIALIZED (
    SELECT * FROM (
        SELECT id FROM holdfast_tasks
        WHERE :path = 'walk' AND id < iif(:before = 'ffffffff-ffff-ffff-ffff-ffffffffffff', x'', :before)
        ORDER BY id DESC LIMIT :scan)
    UNION ALL
    SELECT * FROM (
        SELECT id FROM holdfast_tasks
        WHERE :path = 'pending' AND ready
        ORDER BY queue_name, priority, enqueued_at, id LIMIT :scan)
    UNION ALL
    SELECT * FROM (
        SELECT id FROM holdfast_tasks
        WHERE :path = 'pending_of' AND ready AND queue_name = :queue_name LIMIT :scan)
    UNION ALL
    SELECT * FROM (
        SELECT id FROM holdfast_tasks
        WHERE :path = 'scheduled' AND due_at IS NOT NULL
        ORDER BY due_at LIMIT :scan)
    UNION ALL
    SELECT * FROM (
        SELECT id FROM holdfast_tasks
        WHERE :path = 'scheduled_of' AND due_at IS NOT NULL AND queue_name = :queue_name LIMIT :scan)
    UNION ALL
    SELECT id FROM holdfast_tasks
    WHERE :path = 'leased' AND id < iif(:before = 'ffffffff-ffff-ffff-ffff-ffffffffffff', x'', :before) AND seq IN (
        SELECT task.value
        FROM holdfast_leases AS lease,
            json_each(iif(json_valid(lease.task_ids), lease.task_ids, '[]')) AS task)
    UNION ALL
    SELECT * FROM (
        SELECT id FROM holdfast_tasks
        WHERE :path = 'dead' AND dead AND id < iif(:before = 'ffffffff-ffff-ffff-ffff-ffffffffffff', x'', :before)
        ORDER BY id DESC LIMIT :scan)
    UNION ALL
    SELECT * FROM (
        SELECT id FROM holdfast_tasks
        WHERE :path = 'dead_of' AND dead AND queue_name = :queue_name AND id < iif(:before = 'ffffffff-ffff-ffff-ffff-ffffffffffff', x'', :before)
        ORDER BY queue_name DESC, id DESC LIMIT :scan)
    UNION ALL
    SELECT * FROM (
        SELECT id FROM holdfast_tasks
        WHERE :path = 'failed' AND error_code IS NOT NULL AND error_code = :error_code
            AND id < iif(:before = 'ffffffff-ffff-ffff-ffff-ffffffffffff', x'', :before)
        ORDER BY id DESC LIMIT :scan)
    UNION ALL
    SELECT * FROM (
        SELECT id FROM holdfast_tasks
        WHERE :path = 'workflow' AND workflow_id = :workflow_id AND id < iif(:before = 'ffffffff-ffff-ffff-ffff-ffffffffffff', x'', :before)
        ORDER BY id DESC LIMIT :scan)
    UNION ALL
    SELECT * FROM (
        SELECT id FROM holdfast_tasks
        WHERE :path = 'parent' AND parent_id = :parent_id AND id < iif(:before = 'ffffffff-ffff-ffff-ffff-ffffffffffff', x'', :before)
        ORDER BY id DESC LIMIT :scan)
), found AS (
    SELECT task.id, task.seq
    FROM holdfast_tasks AS task
    WHERE task.id IN (SELECT id FROM candidates)
        AND task.id < iif(:before = 'ffffffff-ffff-ffff-ffff-ffffffffffff', x'', :before)
        AND (:any_status OR task.status IN (SELECT value FROM json_each(:statuses)))
        AND task.queue_name = ifnull(:queue_name, task.queue_name)
        AND task.task_name = ifnull(:task_name, task.task_name)
        AND (:worker_id IS NULL OR task.claimed_by_worker_id = :worker_id)
        AND (:error_code IS NULL OR task.error_code = :error_code)
        AND (:exception IS NULL OR rtrim(substr(task.failed_reason, 1, instr(task.failed_reason || ' ', ' ') - 1), ':') = :exception)
        AND (:workflow_id IS NULL OR task.workflow_id = :workflow_id)
        AND (:parent_id IS NULL OR task.parent_id = :parent_id)
        AND (:tag IS NULL OR instr(task.tags, :tag) > 0)
        AND (:dead IS NULL OR ifnull(task.dead, 0) = :dead)
        AND (:text IS NULL OR instr(lower(
            task.id || ' ' || task.task_name || ' ' || ifnull(task.unique_key, '') || ' '
                || ifnull(task.concurrency_key, '')), :text) > 0)
        AND (:created_from IS NULL OR task.created_at >= :created_from)
        AND (:created_until IS NULL OR task.created_at < :created_until)
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
