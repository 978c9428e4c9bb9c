-- The queues whose keys do not take turns, and the version of the limits.
SELECT queue_name, NULL FROM holdfast_queues WHERE NOT fair
UNION ALL
SELECT NULL, value FROM holdfast_meta WHERE name = 'limits';
