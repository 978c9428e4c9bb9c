-- replace: PENDING, SCHEDULED → same, with another payload; only while nothing has started.
-- The arguments come with the version they were made for. The digest stays that of the send that
-- made the task: who repeats that send under its id must be recognised.
-- Differs from SQLite, which needs no types for its parameters.
UPDATE holdfast_tasks
SET args = :args, kwargs = :kwargs, task_options = :task_options, tags = :tags,
    version = :version::int, max_retries = :max_retries::int,
    concurrency_key = :concurrency_key::text,
    good_until = coalesce(
        :good_until::timestamptz,
        greatest(enqueued_at, :now) + :good_for_us::bigint * interval '1 microsecond'),
    expire_at = coalesce(
        :good_until::timestamptz,
        greatest(enqueued_at, :now) + :good_for_us::bigint * interval '1 microsecond'),
    good_for_us = :good_for_us::bigint, updated_at = :now
WHERE id = :id::uuid AND status IN ('PENDING', 'SCHEDULED') AND attempt = 0
RETURNING id;
