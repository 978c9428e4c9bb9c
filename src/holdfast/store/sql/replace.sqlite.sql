-- replace: PENDING, SCHEDULED → same, with another payload; only while nothing has started.
-- Differs from PostgreSQL, which needs the types of its parameters spelled out.
UPDATE holdfast_tasks
SET args = :args, kwargs = :kwargs, task_options = :task_options, tags = :tags,
    enqueue_sha = :enqueue_sha, max_retries = :max_retries,
    good_until = :good_until, expire_at = :good_until, updated_at = :now
WHERE id = :id AND status IN ('PENDING', 'SCHEDULED') AND attempt = 0
RETURNING id;
