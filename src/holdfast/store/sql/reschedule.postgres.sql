-- reschedule: PENDING, SCHEDULED → PENDING, SCHEDULED: another time, queue or priority.
-- Differs from SQLite in how a batch is bound. A null parameter leaves its column as it is,
-- except that :move says whether the time is to change at all (null then means: now), and :renew
-- whether the deadline is (a unique `debounce` is sent with its own; null then means: none).
-- A debounce leaves a task alone that has started before: it waits for its retry.
WITH moved AS (
    UPDATE holdfast_tasks AS task
    SET (
            status, ready, due_at, run_at, enqueued_at, good_until, expire_at, good_for_us
        ) = (
            SELECT
                CASE WHEN wanted.at > clock.now THEN 'SCHEDULED' ELSE 'PENDING' END,
                (wanted.at > clock.now) IS NOT TRUE,
                CASE WHEN wanted.at > clock.now THEN wanted.at END,
                CASE WHEN :move::bool THEN wanted.at ELSE task.run_at END,
                CASE WHEN :move::bool THEN greatest(wanted.at, clock.now) ELSE task.enqueued_at END,
                CASE WHEN :renew::bool THEN deadline.at ELSE task.good_until END,
                CASE WHEN :renew::bool THEN deadline.at ELSE task.expire_at END,
                CASE WHEN :renew::bool THEN :good_for_us::bigint ELSE task.good_for_us END
            FROM
                (SELECT :now AS now) AS clock,
                LATERAL (
                    SELECT CASE
                        WHEN NOT :move::bool THEN task.due_at
                        ELSE coalesce(
                            clock.now + :delay_us::bigint * interval '1 microsecond',
                            :run_at::timestamptz)
                    END AS at
                ) AS wanted,
                LATERAL (
                    SELECT coalesce(
                        :good_until::timestamptz,
                        greatest(wanted.at, clock.now)
                            + :good_for_us::bigint * interval '1 microsecond') AS at
                ) AS deadline
        ),
        queue_name = coalesce(:queue_name::text, queue_name),
        priority = coalesce(:priority::int, priority),
        updated_at = :now
    WHERE id = ANY (:ids::uuid[])
        AND status IN ('PENDING', 'SCHEDULED')
        AND (NOT :renew::bool OR attempt = 0)
    RETURNING id, status, queue_name
)
SELECT
    id, status, queue_name,
    (SELECT count(pg_notify(:hint_channel, p)) FROM unnest(:hint_payloads::text[]) AS p)
FROM moved;
