-- Where these workflows stand: what a waiter asks. Differs from SQLite in how a batch is bound.
SELECT workflow_id, status FROM holdfast_workflows WHERE workflow_id = ANY (:ids::uuid[]);
