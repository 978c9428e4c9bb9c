-- Every route, and the version of all in a row without a pattern; without the routes, if :known is
-- that version.
SELECT NULL AS pattern, value AS queues, NULL AS set_by, at AS updated_at
FROM holdfast_meta WHERE name = 'routes'
UNION ALL
SELECT pattern, queues, set_by, updated_at FROM holdfast_routes
WHERE coalesce((SELECT value FROM holdfast_meta WHERE name = 'routes'), '') <> :known;
