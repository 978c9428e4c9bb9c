-- Give tasks in flight without a lease row one that has expired: the reaper takes it from there.
-- Differs from PostgreSQL in the type of the list.
INSERT INTO holdfast_leases (token, worker_id, expires_at, task_ids)
VALUES (:token, 'unknown', :now, :keys)
ON CONFLICT (token) DO NOTHING;
