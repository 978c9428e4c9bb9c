-- reschedule: PENDING, SCHEDULED → PENDING, SCHEDULED: another time, queue or priority.
-- Differs from SQLite in how a batch is bound. A null parameter leaves its column as it is,
-- except that :move says whether the time is to change at all (null then means: now).
WITH moved AS (
    UPDATE holdfast_tasks AS task
    SET (status, ready, due_at, run_at, enqueued_at) = (
            SELECT
                CASE WHEN wanted.at > clock.now THEN 'SCHEDULED' ELSE 'PENDING' END,
                (wanted.at > clock.now) IS NOT TRUE,
                CASE WHEN wanted.at > clock.now THEN wanted.at END,
                CASE WHEN :move::bool THEN wanted.at ELSE task.run_at END,
                CASE WHEN :move::bool THEN greatest(wanted.at, clock.now) ELSE task.enqueued_at END
            FROM
                (SELECT :now AS now) AS clock,
                LATERAL (
                    SELECT CASE
                        WHEN NOT :move::bool THEN task.due_at
                        ELSE coalesce(
                            clock.now + :delay_us::bigint * interval '1 microsecond',
                            :run_at::timestamptz)
                    END AS at
                ) AS wanted
        ),
        queue_name = coalesce(:queue_name::text, queue_name),
        priority = coalesce(:priority::int, priority),
        updated_at = :now
    WHERE id = ANY (:ids::uuid[]) AND status IN ('PENDING', 'SCHEDULED')
    RETURNING id, status, queue_name
)
SELECT
    id, status, queue_name,
    (SELECT count(pg_notify(:hint_channel, p)) FROM unnest(:hint_payloads::text[]) AS p)
FROM moved;
