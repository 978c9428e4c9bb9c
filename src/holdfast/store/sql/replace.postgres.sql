-- replace: PENDING, SCHEDULED → same, with another payload; only while nothing has started.
-- Differs from SQLite, which needs no types for its parameters.
UPDATE holdfast_tasks
SET args = :args, kwargs = :kwargs, task_options = :task_options, tags = :tags,
    enqueue_sha = :enqueue_sha, max_retries = :max_retries::int,
    good_until = :good_until::timestamptz, expire_at = :good_until::timestamptz, updated_at = :now
WHERE id = :id::uuid AND status IN ('PENDING', 'SCHEDULED') AND attempt = 0
RETURNING id;
