-- The lease of a token, if it is there: how a worker whose claim got no answer learns whether it
-- landed. Not locked: nobody holds a lease while it waits for a task. Differs from SQLite in the
-- parameter's type.
SELECT token, task_ids FROM holdfast_leases WHERE token = :token::uuid;
