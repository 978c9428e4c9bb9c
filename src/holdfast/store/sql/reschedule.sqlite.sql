-- reschedule: PENDING, SCHEDULED → PENDING, SCHEDULED: another time, queue or priority.
-- Differs from PostgreSQL in how a batch is bound. A null parameter leaves its column as it is,
-- except that :move says whether the time is to change at all (null then means: now), and :renew
-- whether the deadline is (a unique `debounce` is sent with its own; null then means: none).
-- A debounce leaves a task alone that has started before: it waits for its retry.
UPDATE holdfast_tasks AS task
SET (status, ready, due_at, run_at, enqueued_at, good_until, expire_at, good_for_us) = (
        SELECT
            CASE WHEN at > :now THEN 'SCHEDULED' ELSE 'PENDING' END,
            ifnull(at <= :now, 1),
            CASE WHEN at > :now THEN at END,
            CASE WHEN :move THEN at ELSE task.run_at END,
            CASE WHEN :move THEN max(ifnull(at, :now), :now) ELSE task.enqueued_at END,
            CASE
                WHEN :renew THEN ifnull(:good_until, max(ifnull(at, :now), :now) + :good_for_us)
                ELSE task.good_until
            END,
            CASE
                WHEN :renew THEN ifnull(:good_until, max(ifnull(at, :now), :now) + :good_for_us)
                ELSE task.expire_at
            END,
            CASE WHEN :renew THEN :good_for_us ELSE task.good_for_us END
        FROM (
            SELECT CASE
                WHEN NOT :move THEN task.due_at
                ELSE ifnull(:now + :delay_us, :run_at)
            END AS at
        )
    ),
    queue_name = ifnull(:queue_name, queue_name),
    priority = ifnull(:priority, priority),
    updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids))
    AND status IN ('PENDING', 'SCHEDULED')
    AND (NOT :renew OR attempt = 0)
RETURNING
    CAST(id AS BLOB) AS id, CAST(status AS BLOB) AS status, CAST(queue_name AS BLOB) AS queue_name;
