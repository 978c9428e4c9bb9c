-- A worker says which limits its code declares.
-- Differs from PostgreSQL in its types.
UPDATE holdfast_workers SET limits = :limits
WHERE worker_id = :worker_id AND limits IS NOT :limits;
