-- submit: ∅ → PENDING. Of one task that may begin at once and has no key, which most sends are of.
-- Differs from PostgreSQL in how rows are bound, and rings after the commit. Nothing is written if it
-- met its own id.
INSERT INTO holdfast_tasks (
    id, task_name, version, queue_name, priority, args, kwargs, task_options, tags,
    enqueue_sha, sent_at, created_at, updated_at, max_retries, deps_needed, deps_open,
    parent_id, root_id, trace_context, concurrency_key, status, ready, enqueued_at
)
VALUES (
    :id, :task_name, :version, :queue_name, :priority, :args, :kwargs, :task_options, :tags,
    :enqueue_sha, :sent_at, :now, :now, :max_retries, 0, 0, :parent_id, :root_id, :trace_context,
    :concurrency_key, 'PENDING', 1, :now
)
ON CONFLICT DO NOTHING;
