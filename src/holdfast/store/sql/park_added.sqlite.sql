-- Steps that have handed over were cancelled or resubmitted, and not all that they added yet: somebody
-- goes on with it. Differs from PostgreSQL in how a batch is bound.
UPDATE holdfast_tasks SET parked = :why WHERE id IN (SELECT value FROM json_each(:ids)) AND handed_over AND finished_at IS NULL;
