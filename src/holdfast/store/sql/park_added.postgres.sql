-- Steps that have handed over were cancelled or resubmitted, and not all that they added yet: somebody
-- goes on with it. Differs from SQLite in how a batch is bound.
UPDATE holdfast_tasks SET parked = :why::text WHERE id = ANY (:ids::uuid[]) AND handed_over AND finished_at IS NULL;
