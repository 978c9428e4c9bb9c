-- replace: PENDING, SCHEDULED → same, with another payload; only while nothing has started.
-- The arguments come with the version they were made for. The digest stays that of the send that
-- made the task: who repeats that send under its id must be recognised.
-- Differs from PostgreSQL, which needs the types of its parameters spelled out.
UPDATE holdfast_tasks
SET args = :args, kwargs = :kwargs, task_options = :task_options, tags = :tags,
    version = :version, max_retries = :max_retries,
    concurrency_key = :concurrency_key,
    good_until = ifnull(:good_until, max(enqueued_at, :now) + :good_for_us),
    expire_at = ifnull(:good_until, max(enqueued_at, :now) + :good_for_us),
    good_for_us = :good_for_us, updated_at = :now
WHERE id = :id AND status IN ('PENDING', 'SCHEDULED') AND attempt = 0
RETURNING 1;
