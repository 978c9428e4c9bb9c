-- Whether a queue may be claimed from, under which version of the limits, and how the clock stands.
SELECT
    (SELECT value FROM holdfast_meta WHERE name = 'limits'),
    (SELECT count(*) FROM holdfast_queues
     WHERE queue_name = :queue_name AND paused_at IS NOT NULL),
    :now;
