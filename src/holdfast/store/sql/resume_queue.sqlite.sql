-- Let a paused queue go on. Differs from PostgreSQL: the doorbell rings after the commit.
UPDATE holdfast_queues
SET paused_at = NULL, paused_by = NULL, updated_at = :now
WHERE queue_name = :queue_name AND paused_at IS NOT NULL
RETURNING 1;
